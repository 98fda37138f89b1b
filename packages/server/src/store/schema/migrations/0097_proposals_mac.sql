-- A MAC of the row, under a key that the database does not have: nobody confirms what somebody else wrote here.
ALTER TABLE proposals ADD COLUMN mac bytea;
