-- Streams of wearable devices (seed 003, Listing 1.1). The paper gives only the first one a time; windows need one each.
CREATE USER devices;
CREATE STREAM Stream1 (ts TIMESTAMP, streamid STRING, location STRING, heartRate INT)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER devices;
CREATE STREAM Stream2 (ts TIMESTAMP, streamid STRING, location STRING, speed DOUBLE)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER devices;
-- screentime is a number of hours
CREATE STREAM Stream3 (ts TIMESTAMP, streamid STRING, location STRING, screentime DOUBLE, category STRING)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER devices;
