-- Three streams of patients' devices; each tuple names the policy that its device sent before it (seed 002, Fig. 6).
CREATE USER hospital;
CREATE STREAM HeartRate (ts TIMESTAMP, Patient_id INT, Beats_per_min INT)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER hospital PUNCTUATED BY Patient_id;
CREATE STREAM BodyTemperature (ts TIMESTAMP, Patient_id INT, Temperature DOUBLE)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER hospital PUNCTUATED BY Patient_id ORDER ANY;
CREATE STREAM BreathingRate (ts TIMESTAMP, Patient_id INT, Frequency INT, Depth INT)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER hospital PUNCTUATED BY Patient_id GOVERNED BY PROVIDER;
