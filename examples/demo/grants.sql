-- A medic reads the own platoon and gets averages of the others.
CREATE GRANT own_platoon READ (ts, SID, Pos) ON Position WHERE Platoon = self.Platoon TO Medic;
CREATE GRANT others_avg AVG (Pos) ON Position WHERE Platoon <> self.Platoon
  WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' TO Medic;
CREATE GRANT own_health READ (*) ON Health WHERE Platoon = self.Platoon TO Medic;

-- An observer learns where the force is as a whole, never where a soldier is.
CREATE GRANT whole_avg AVG (Pos) ON Position WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' TO Observer;

-- A nurse reads the beds of the own room, and of the whole ward only averages of four patients or more.
CREATE GRANT own_room READ (ts, Patient_id, Beats_per_min) ON Ward WHERE Room = self.Room TO Nurse;
CREATE GRANT ward_avg AVG (Temperature) ON Ward WINDOW AT LEAST '10 seconds' STEP AT LEAST '10 seconds' MIN GROUP 4
  TO Nurse;

CREATE GRANT position_feed APPEND ON Position TO Sensor;
CREATE GRANT health_feed APPEND ON Health TO Sensor;
CREATE GRANT ward_feed APPEND ON Ward TO Sensor;
