-- Where the soldiers are and how they are (seed 000, Example 3.1).
CREATE USER staff;
CREATE STREAM Position (ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER staff;
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Platoon STRING, Heart INT, BPressure INT)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER staff;
