-- Hosts that signed off, and have not signed on since: a sign-on belongs to a host, for all instances. Empty acquirer:
-- the one of the settings.
CREATE TABLE acquirer_sign_offs (
  acquirer  text NOT NULL,
  -- Name and port.
  host      text NOT NULL,
  since     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (acquirer, host)
);
-- The holder's host is connected, and has signed off.
ALTER TABLE acquirer_sessions ADD COLUMN is_signed_off boolean NOT NULL DEFAULT false;
