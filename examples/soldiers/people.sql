CREATE ROLE Doctor;
CREATE ROLE Captain;
CREATE ROLE Observer;

CREATE USER paul ROLES (Doctor) SET (Platoon = 'X');
CREATE USER rita ROLES (Doctor) SET (Platoon = 'Y');
CREATE USER cole ROLES (Captain) SET (Platoon = 'X');
CREATE USER olga ROLES (Observer);

-- Action `a` has begun and goes on: end('a') is not set (R6).
SET FACT start('a') = TIMESTAMP '2026-01-01 10:50:00';
SET FACT target('a') = 100.0;
