-- Delegation (seed 002, section 4.4 and Fig. 8b): with the patient's permission, which is the grant option in the patient's
-- policy, and the hospital's, which is that of the grant `heart`, a general physician consults cardiologists.
CREATE STREAM Consult OWNER gupta AS
  SELECT Patient_id, Beats_per_min, ts
  FROM HeartRate
  WHERE Beats_per_min > 80
  ON RESULT(
    INSERT SP AS sp_result INTO STREAM
    LET
    sp_result.DDP = TUPLES:ALL
    sp_result.SRP = frbac:Cardiologist,
    sp_result.SIGN = POSITIVE,
    sp_result.IMMUTABLE = TRUE);
