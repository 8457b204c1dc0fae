-- After the six policies of seed 004, Table 2, in its order.
CREATE GRANT port_waters READ (*) ON AIS WHERE distance_nm(Long, Lat, port(self.Port)) <= 0 TO PortAuthority;
CREATE GRANT traffic COUNT (DISTINCT SID) ON AIS WHERE distance_nm(Long, Lat, port(self.Port)) <= 50
  WINDOW AT LEAST '20 seconds' STEP AT LEAST '20 seconds' TO PortAuthority;
CREATE GRANT logistics READ (AIS.SID, Name, Type, Long, Lat, T, Route.SID, next_leg, free_load, ETA) ON AIS, Route
  WHERE AIS.SID = Route.SID AND distance_nm(Long, Lat, port(self.Port)) <= 0 TO PortAuthority;
CREATE GRANT own_fleet READ (*) ON AIS WHERE SID IN fleet(self.Company) TO ShipCompany;
CREATE GRANT around_me READ (SID, Long, Lat, Course, T) ON AIS
  WHERE distance_nm(Long, Lat, self.Long, self.Lat) <= 15 TO Captain;
CREATE GRANT emergency READ (*) ON AIS WHERE SID IN involved('grounding')
  DURING [start('grounding'), end('grounding')] TO Captain;
