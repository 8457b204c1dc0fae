CREATE ROLE Medic;
CREATE ROLE Observer;
CREATE ROLE Nurse;
CREATE ROLE Sensor;

CREATE USER ada;
CREATE USER paul ROLES (Medic) SET (Platoon = 'X');
CREATE USER olga ROLES (Observer);
CREATE USER nina ROLES (Nurse) SET (Room = 'east');

-- What writes the generated tuples.
CREATE USER sensors ROLES (Sensor);
