-- Ships' reports as a receiver of AIS hears them, and their voyages in a table (seed 004, section 4; D1).
-- `sluicegate demo` puts its own address and file in place of these.
CREATE USER registry;
CREATE STREAM AIS (SID BIGINT, Name STRING, Type STRING, Long DOUBLE, Lat DOUBLE, Course DOUBLE, Speed DOUBLE,
                   Status STRING, Destination STRING, T TIMESTAMP)
  TIMESTAMP BY T WATERMARK '2 seconds' OWNER registry
  FROM ais OPTIONS (tcp = '127.0.0.1:10110', duplicates = '2');
CREATE STREAM Route (SID BIGINT, next_leg STRING, free_load INT, ETA TIMESTAMP) KEY (SID) OWNER registry
  FROM sqlite OPTIONS (path = 'route.db', table = 'route', version = 'version');
