CREATE ROLE PortAuthority;
CREATE ROLE ShipCompany;
CREATE ROLE Captain;

CREATE USER psa ROLES (PortAuthority) SET (Port = 'SG');
CREATE USER acme_desk ROLES (ShipCompany) SET (Company = 'acme');
-- Vega's position is that of its ship's latest report (D3).
CREATE USER vega ROLES (Captain) SET (SID = 563012345) FOLLOW AIS (Long, Lat) ON SID WITHIN '10 minutes';
-- Orion lies at anchor.
CREATE USER orion ROLES (Captain) SET (SID = 412000222, Long = 103.7, Lat = 1.2);

-- Everybody knows where the port is, so that notices may say it (R9).
SET PUBLIC FACT port('SG') = POLYGON '103.6 1.15, 104.1 1.15, 104.1 1.35, 103.6 1.35';
SET FACT fleet('acme') = {563012345, 563067890};
SET FACT involved('grounding') = {412000111};
SET FACT start('grounding') = TIMESTAMP '2026-01-01 12:03:00';
