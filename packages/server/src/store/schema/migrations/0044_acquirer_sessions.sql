-- Which instance holds the one session that an acquirer's host allows. Empty name: the acquirer of the settings.
CREATE TABLE acquirer_sessions (
  acquirer  text PRIMARY KEY,
  -- An api lease: whoever finds none takes the session.
  lease_id  uuid REFERENCES leases ON DELETE SET NULL,
  -- What the holder says of its link.
  is_up     boolean NOT NULL DEFAULT false,
  detail    text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
