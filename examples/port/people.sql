CREATE ROLE PortAuthority;
CREATE ROLE ShipCompany;
CREATE ROLE Captain;

CREATE USER ada;
CREATE USER harbour ROLES (PortAuthority) SET (Port = 'SG');
CREATE USER acme ROLES (ShipCompany) SET (Company = 'acme');
-- Where the captain is, is where the ship last said that it was (D3).
CREATE USER vega ROLES (Captain) SET (SID = 563012345) FOLLOW AIS (Long, Lat) ON SID WITHIN '10 minutes';

-- Everybody knows where the port is, so that maps and notices may show it (R9).
SET PUBLIC FACT port('SG') = POLYGON '103.60 1.19, 103.66 1.16, 103.74 1.16, 103.80 1.20, 103.88 1.23,
  104.02 1.262, 104.06 1.29, 104.03 1.33, 103.90 1.31, 103.70 1.31, 103.60 1.31';
SET FACT fleet('acme') = {563012345, 563067890, 564199483, 565094187, 538635353, 371343433, 352219374, 564229869,
  371665317, 477814878, 538054921, 371908670, 477391808, 563889659, 564512117, 564058496};
-- An emergency has who is in it, and no beginning yet: nobody is let in (R6).
SET FACT involved('grounding') = {412000111};
