-- Within how many minutes a second admin must confirm; 0: one admin is enough. No row: nobody has decided yet.
CREATE TABLE two_admin_rule (
  one      boolean PRIMARY KEY DEFAULT true CHECK (one),
  minutes  integer NOT NULL CHECK (minutes BETWEEN 0 AND 10080)
);
