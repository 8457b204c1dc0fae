-- The four policies of Table II, all for doctors; delta is 5.
CREATE GRANT own_platoon READ (Pos, SID) ON Position WHERE Platoon = self.Platoon TO Doctor;
CREATE GRANT others_avg AVG (Pos) ON Position WHERE Platoon <> self.Platoon
  DURING [start('a'), end('a')] WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO Doctor;
CREATE GRANT own_health READ (*) ON Health WHERE Platoon = self.Platoon TO Doctor;
CREATE GRANT near_target READ (BPressure, Health.SID, Pos) ON Health, Position
  WHERE Health.Platoon <> self.Platoon AND Position.SID = Health.SID
    AND Pos >= target('a') - 5 AND Pos <= target('a') + 5 TO Doctor;

-- A captain follows every platoon on the map, and the pulse of the own one.
CREATE GRANT whole_map READ (ts, SID, Platoon, Pos) ON Position TO Captain;
CREATE GRANT own_pulse READ (SID, Heart) ON Health WHERE Platoon = self.Platoon TO Captain;

-- An observer learns where the force is as a whole, never where a soldier is.
CREATE GRANT whole_avg AVG (Pos) ON Position WINDOW AT LEAST '1 hour' STEP AT LEAST '1 hour' TO Observer;
