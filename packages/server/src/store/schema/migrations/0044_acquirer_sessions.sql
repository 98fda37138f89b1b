-- Which instance holds the one session that an acquirer's host allows. Empty name: the acquirer of the settings.
CREATE TABLE acquirer_sessions (
  acquirer  text PRIMARY KEY,
  -- An api lease: without one, an instance may take the session.
  lease_id  uuid REFERENCES leases ON DELETE SET NULL,
  -- The holder's report about its link.
  is_up     boolean NOT NULL DEFAULT false,
  detail    text NOT NULL DEFAULT ''
) WITH (fillfactor = 50);
