CREATE ROLE Public;
CREATE ROLE School INHERITS Public;
CREATE USER lta;
CREATE USER visitor ROLES (Public);
CREATE USER teacher ROLES (School);

-- The Land Transport Authority sees heavy rain in windows of five tuples, and may filter on the rain rate only.
CREATE GRANT lta AGGREGATE (LAST(samplingtime), AVG(rainrate), MAX(windspeed)) ON weather WHERE rainrate > 5
  NARROW BY (rainrate) WINDOW AT LEAST 5 ROWS STEP AT LEAST 2 ROWS TO USER lta;

-- Anyone may read the thermometer.
CREATE GRANT thermometer READ (samplingtime, temperature) ON weather TO Public;

-- Schools get hourly rain statistics besides.
CREATE GRANT school_rain AGGREGATE (AVG(rainrate), MAX(rainrate)) ON weather
  WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO School;
