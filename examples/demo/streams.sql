-- The soldiers' streams (seed 000) and a hospital ward, in one catalog.
CREATE USER staff;
CREATE STREAM Position (ts TIMESTAMP, SID STRING, Platoon STRING, Pos DOUBLE)
  TIMESTAMP BY ts WATERMARK '2 seconds' OWNER staff;
CREATE STREAM Health (ts TIMESTAMP, SID STRING, Platoon STRING, Heart INT, BPressure INT)
  TIMESTAMP BY ts WATERMARK '2 seconds' OWNER staff;

CREATE USER hospital;
CREATE STREAM Ward (ts TIMESTAMP, Patient_id INT, Room STRING, Beats_per_min INT, Temperature DOUBLE)
  TIMESTAMP BY ts WATERMARK '2 seconds' OWNER hospital;
