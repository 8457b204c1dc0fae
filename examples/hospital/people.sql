-- R = {C, D, DM, E, GP, ND}, the roles of seed 002, Fig. 2. The figure itself is lost: the text spells out all but DM and E,
-- and says nothing of who inherits whom, so that these two names and the hierarchy are ours.
CREATE ROLE Employee;                                  -- E
CREATE ROLE NurseOnDuty INHERITS Employee;             -- ND
CREATE ROLE Doctor INHERITS Employee;                  -- D
CREATE ROLE Cardiologist INHERITS Doctor;              -- C
CREATE ROLE Dermatologist INHERITS Doctor;             -- DM
CREATE ROLE GeneralPhysician INHERITS Doctor;          -- GP
CREATE ROLE Device;

CREATE USER chen ROLES (Cardiologist);
CREATE USER dora ROLES (Doctor);
CREATE USER devi ROLES (Dermatologist);
CREATE USER gupta ROLES (GeneralPhysician);
CREATE USER nina ROLES (NurseOnDuty);
CREATE USER emil ROLES (Employee);
CREATE USER device120 ROLES (Device) SET (Patient_id = 120);
