-- Every table that grows has partner_id first in its primary key, so that it can be distributed by partner.

CREATE TABLE partners (
  id          uuid PRIMARY KEY,
  state       text NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
  settings    jsonb NOT NULL,
  created_at  timestamptz NOT NULL DEFAULT now(),
  updated_at  timestamptz NOT NULL DEFAULT now()
);

-- Encryption, signing and webhook keys, sealed under the master key. An API key is stored as its hash alone.
CREATE TABLE partner_keys (
  partner_id   uuid NOT NULL REFERENCES partners,
  id           uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('apiKey', 'encryptionKey', 'signingKey', 'webhookSecret')),
  material     bytea NOT NULL,
  active_from  timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  seals        bigint NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE UNIQUE INDEX partner_keys_api_key ON partner_keys (material) WHERE kind = 'apiKey';

CREATE TABLE terminals (
  partner_id        uuid NOT NULL,
  tid               text NOT NULL,
  mid               text NOT NULL,
  merchant_id       text NOT NULL DEFAULT '',
  merchant_name     text NOT NULL DEFAULT '',
  merchant_address  text NOT NULL DEFAULT '',
  device_id         text NOT NULL DEFAULT '',
  app_name          text NOT NULL DEFAULT '',
  -- The numbers last given; 0 before the first.
  trace_no          integer NOT NULL DEFAULT 0,
  invoice_no        integer NOT NULL DEFAULT 0,
  batch_no          integer NOT NULL DEFAULT 1,
  created_at        timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, tid)
) WITH (fillfactor = 50);

CREATE TABLE transactions (
  partner_id            uuid NOT NULL,
  id                    uuid NOT NULL,
  origin                text NOT NULL CHECK (origin IN ('command', 'switch')),
  command               text NOT NULL,
  state                 text NOT NULL CHECK (state IN ('INIT', 'SUCCESS', 'ERROR')),
  req_id                text,
  external_id           text,
  body_hash             bytea,
  original_id           uuid,
  original_external_id  text,
  chain_id              uuid NOT NULL,
  -- The one that the command brought.
  callback_url          text,
  tid                   text,
  batch_no              text,
  amount_minor          bigint,
  currency              text,
  facts                 json NOT NULL,
  -- Who runs it while it is INIT.
  instance_id           uuid,
  epoch                 integer,
  notification_id       uuid,
  created_at            timestamptz NOT NULL DEFAULT now(),
  completed_at          timestamptz,
  PRIMARY KEY (partner_id, id)
);
-- The idempotency key of a command; what a switch reported has one of its own.
CREATE UNIQUE INDEX transactions_req_id ON transactions (partner_id, req_id) WHERE origin = 'command';
CREATE UNIQUE INDEX transactions_external_id ON transactions (partner_id, external_id) WHERE origin = 'switch';
CREATE INDEX transactions_reported_req_id ON transactions (partner_id, req_id) WHERE origin = 'switch' AND req_id IS NOT NULL;
CREATE INDEX transactions_in_flight ON transactions (instance_id) WHERE state = 'INIT';

-- History: a notification is its frozen IPN, never updated. An id finds its day, because it begins with its time.
CREATE TABLE notifications (
  partner_id            uuid NOT NULL,
  id                    uuid NOT NULL,
  transaction_id        uuid,
  original_id           uuid,
  original_external_id  text,
  chain_id              uuid NOT NULL,
  command               text NOT NULL,
  callback_url          text,
  content               json NOT NULL,
  -- Commit order for the pull cursor: ids are not in commit order.
  xid                   xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at            timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
) PARTITION BY RANGE (id);
CREATE INDEX notifications_commit_order ON notifications (partner_id, xid, id);

CREATE TABLE attempts (
  partner_id    uuid NOT NULL,
  -- The notification's.
  id            uuid NOT NULL,
  claim_no      integer NOT NULL,
  attempt_no    integer NOT NULL,
  instance_id   uuid NOT NULL,
  started_at    timestamptz NOT NULL,
  duration_ms   integer NOT NULL,
  url           text NOT NULL,
  address       text,
  http_status   integer,
  reason        text,
  detail        text,
  answer        bytea,
  key_id        text,
  PRIMARY KEY (partner_id, id, claim_no)
) PARTITION BY RANGE (id);

-- What is still to be delivered, and nothing else: small, and busy.
CREATE TABLE pending (
  partner_id         uuid NOT NULL,
  -- The notification's.
  id                 uuid NOT NULL,
  chain_id           uuid NOT NULL,
  due_at             timestamptz NOT NULL,
  -- Who holds it; both null: nobody.
  instance_id        uuid,
  epoch              integer,
  claim_no           integer NOT NULL,
  attempts_made      integer NOT NULL DEFAULT 0,
  bytes              integer NOT NULL,
  to_registered      boolean NOT NULL DEFAULT false,
  schedule_start     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id),
  CHECK ((instance_id IS NULL) = (epoch IS NULL))
) WITH (
  fillfactor = 80,
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);
CREATE INDEX pending_due ON pending (partner_id, due_at) WHERE instance_id IS NULL;
CREATE INDEX pending_held ON pending (instance_id) WHERE instance_id IS NOT NULL;

-- Given up for now, kept, replayable. Its content comes along only when its day of history is dropped.
CREATE TABLE parked (
  partner_id     uuid NOT NULL,
  id             uuid NOT NULL,
  chain_id       uuid NOT NULL,
  claim_no       integer NOT NULL,
  attempts_made  integer NOT NULL,
  bytes          integer NOT NULL,
  reason         text NOT NULL,
  notification   jsonb,
  parked_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);

CREATE TABLE instances (
  id          uuid PRIMARY KEY,
  epoch       integer NOT NULL,
  expires_at  timestamptz NOT NULL,
  host        text NOT NULL,
  started_at  timestamptz NOT NULL DEFAULT now()
);

-- What an operator should know of, alerts among it: those are sent on until the alert URL took them.
CREATE TABLE events (
  partner_id    uuid NOT NULL,
  id            uuid NOT NULL,
  kind          text NOT NULL,
  subject_id    uuid,
  detail        jsonb NOT NULL,
  alert_due_at  timestamptz,
  alert_tries   integer NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE INDEX events_alerts_due ON events (alert_due_at) WHERE alert_due_at IS NOT NULL;

-- Every instance keeps partners in memory for some seconds: this shortens them. Seals are counted without a word.
CREATE FUNCTION notify_partner() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_notify('paybell_partner', coalesce(to_jsonb(NEW)->>'partner_id', to_jsonb(NEW)->>'id'));
  RETURN NULL;
END $$;
CREATE TRIGGER partners_changed AFTER INSERT OR UPDATE OF state, settings ON partners
  FOR EACH ROW EXECUTE FUNCTION notify_partner();
CREATE TRIGGER partner_keys_changed AFTER INSERT OR UPDATE OF active_from, expires_at ON partner_keys
  FOR EACH ROW EXECUTE FUNCTION notify_partner();
