-- A weather station of the National Environment Agency, one tuple every thirty seconds (seed 001, Example 1).
CREATE USER nea;
CREATE STREAM weather (samplingtime TIMESTAMP, temperature DOUBLE, humidity DOUBLE, solarradiation DOUBLE,
    rainrate DOUBLE, windspeed DOUBLE, winddirection INT, barometer DOUBLE)
  TIMESTAMP BY samplingtime WATERMARK '1 minute' OWNER nea;
