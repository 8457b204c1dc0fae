-- The roles that the paper's text names; its figure of the hierarchy is lost, so the inheritance is ours.
CREATE ROLE NurseOnDuty;
CREATE ROLE Doctor;
CREATE ROLE Cardiologist INHERITS Doctor;
CREATE ROLE GeneralPhysician INHERITS Doctor;
CREATE ROLE Device;

CREATE USER chen ROLES (Cardiologist);
CREATE USER gupta ROLES (GeneralPhysician);
CREATE USER nina ROLES (NurseOnDuty);
CREATE USER device120 ROLES (Device) SET (Patient_id = 120);
