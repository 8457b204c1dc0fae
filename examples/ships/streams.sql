-- Ships' positions as a stream, their voyages as a table: it has no event time (seed 004, section 4; D1).
CREATE USER registry;
CREATE STREAM AIS (SID BIGINT, Name STRING, Type STRING, Long DOUBLE, Lat DOUBLE, T TIMESTAMP)
  TIMESTAMP BY T WATERMARK '1 minute' OWNER registry;
CREATE STREAM Route (SID BIGINT, next_leg STRING, free_load INT, ETA TIMESTAMP) OWNER registry;
