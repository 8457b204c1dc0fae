-- Who there is. What they may see is said by the policies in `policies`, and by nothing else.
CREATE ROLE Planner;
CREATE USER lta;
CREATE USER ura ROLES (Planner) SET (office = 'Maxwell');
