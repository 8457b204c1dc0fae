-- Streams by the names of seed 004's appendices; roles and grants are in authorizations.xml.
CREATE USER registry;
CREATE STREAM AisGpsStream (MMSI BIGINT, Name STRING, Longitude DOUBLE, Latitude DOUBLE, T TIMESTAMP)
  TIMESTAMP BY T WATERMARK '1 minute' OWNER registry;
CREATE STREAM RouteStream (MMSI BIGINT, Next_leg STRING, Free_load INT) OWNER registry;

CREATE USER psa ROLES ("Port Authority") SET (Port = 'SG');
CREATE USER acme_desk ROLES ("Ship Company") SET (Company = 'acme');
CREATE USER vega ROLES ("Ship Captain") SET (MMSI = 563012345)
  FOLLOW AisGpsStream (Longitude, Latitude) ON MMSI WITHIN '10 minutes';
CREATE USER orion ROLES ("Ship Captain") SET (MMSI = 412000222, Longitude = 103.7, Latitude = 1.2);

SET PUBLIC FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35, 103.6 1.35';
SET FACT fleet('acme') = {563012345, 563067890};
SET FACT involved('grounding') = {412000111};
SET FACT start('grounding') = TIMESTAMP '2026-01-01 12:03:00';
