-- What the hospital allows. A patient's own policy, in the data, has to allow it too (R14).
CREATE GRANT heart READ (ts, Patient_id, Beats_per_min) ON HeartRate TO Doctor WITH GRANT OPTION;
CREATE GRANT heart_on_duty READ (Patient_id, Beats_per_min) ON HeartRate TO NurseOnDuty;
CREATE GRANT temperature READ (ts, Patient_id, Temperature) ON BodyTemperature TO Doctor;
CREATE GRANT temperature_on_duty READ (Patient_id, Temperature) ON BodyTemperature TO NurseOnDuty;

-- A device writes for its own patient only, tuples and punctuations.
CREATE GRANT heart_feed APPEND ON HeartRate WHERE Patient_id = self.Patient_id TO Device;
CREATE GRANT temperature_feed APPEND ON BodyTemperature WHERE Patient_id = self.Patient_id TO Device;
CREATE GRANT breathing_feed APPEND ON BreathingRate WHERE Patient_id = self.Patient_id TO Device;

-- The server narrows what patients allow, never widens it: breathing is for doctors.
CREATE SP doctors_only INTO STREAM BreathingRate LET DDP = TUPLES:ALL, SRP = frbac:{Doctor}, SIGN = POSITIVE;
