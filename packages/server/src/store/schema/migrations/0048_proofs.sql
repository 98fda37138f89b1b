--! homes
-- The rest of an accepted notification once its day of history was dropped: enough to prove its delivery.
CREATE TABLE proofs (
  partner_id      uuid NOT NULL,
  -- The id of the notification.
  id              uuid NOT NULL,
  transaction_id  uuid,
  command         text NOT NULL,
  created_at      timestamptz NOT NULL,
  -- Of the attempt that was accepted.
  started_at      timestamptz NOT NULL,
  duration_ms     integer NOT NULL,
  url             text NOT NULL,
  address         text,
  http_status     integer,
  key_id          text,
  attempts        integer NOT NULL,
  -- SHA-256 of the content as it was committed.
  content_sha256  bytea NOT NULL,
  PRIMARY KEY (partner_id, id)
);
