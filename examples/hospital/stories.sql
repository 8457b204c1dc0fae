-- The three motivating examples of seed 002, section 1.2: devices that change their policies with place, time and vital signs.
-- What a policy says depends on the device alone; the server knows only whom the policy names.

-- Example 1, protection against context-aware spam: businesses see a walker only where the walker wants to be seen.
CREATE ROLE Business;
CREATE ROLE CoffeeShop INHERITS Business;
CREATE ROLE ShoeStore INHERITS Business;
CREATE USER beans ROLES (CoffeeShop);
CREATE USER heels ROLES (ShoeStore);
CREATE USER city;
CREATE STREAM Walk (ts TIMESTAMP, Person_id INT, Place STRING)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER city PUNCTUATED BY Person_id GOVERNED BY PROVIDER;

-- Example 2, privacy of personal health data: the doctor always, the closest hospital and the ambulance in danger, the
-- insurance company never, whatever else it may be.
CREATE ROLE FamilyDoctor;
CREATE ROLE Emergency;
CREATE ROLE ClosestHospital INHERITS Emergency;
CREATE ROLE AmbulanceDispatch INHERITS Emergency;
CREATE ROLE Insurer;
CREATE USER fay ROLES (FamilyDoctor);
CREATE USER mercy ROLES (ClosestHospital);
CREATE USER dispatch ROLES (AmbulanceDispatch);
CREATE USER acme ROLES (Insurer, Emergency);
CREATE USER patients;
CREATE STREAM HomeMonitor (ts TIMESTAMP, Patient_id INT, Beats_per_min INT, Address STRING)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER patients PUNCTUATED BY Patient_id GOVERNED BY PROVIDER;

-- Example 3, privacy in the workplace: a company car is the company's business while its driver works.
CREATE ROLE CoWorker;
CREATE ROLE Manager INHERITS CoWorker;
CREATE USER mona ROLES (Manager);
CREATE USER carl ROLES (CoWorker);
CREATE USER company;
CREATE STREAM CompanyCar (ts TIMESTAMP, Employee_id INT, Place STRING, Speed INT)
  TIMESTAMP BY ts WATERMARK '10 seconds' OWNER company PUNCTUATED BY Employee_id GOVERNED BY PROVIDER;
