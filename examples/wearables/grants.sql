CREATE ROLE HealthApp;
CREATE ROLE Coach;
CREATE USER ann ROLES (HealthApp);
CREATE USER bob ROLES (Coach);

CREATE GRANT app_heart READ (*) ON Stream1 TO HealthApp;
CREATE GRANT app_speed READ (*) ON Stream2 TO HealthApp;
CREATE GRANT app_screen READ (*) ON Stream3 TO HealthApp;

-- A coach sees pulses in the gym only.
CREATE GRANT gym_heart READ (ts, streamid, location, heartRate) ON Stream1 WHERE location = 'gym' TO Coach;
CREATE GRANT coach_speed READ (location, speed) ON Stream2 TO Coach;
