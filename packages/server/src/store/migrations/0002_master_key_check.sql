-- A value sealed under the master key with which this database was first started: another master key is recognised at once.
CREATE TABLE master_key_check (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  sealed    bytea NOT NULL
);
