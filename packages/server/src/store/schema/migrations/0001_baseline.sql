-- Tables shared by all partners. Tables that grow with partners' activity are in 0002_homes.sql.

-- Living processes that run commands (api), and threads that send (delivery). A holder increments its beat every
-- second. Others delete a row whose beat has stopped, and an id is never reused.
CREATE TABLE leases (
  id          uuid PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('api', 'delivery')),
  beat        bigint NOT NULL DEFAULT 0,
  beaten_at   timestamptz NOT NULL DEFAULT now(),
  started_at  timestamptz NOT NULL DEFAULT now(),
  host        text NOT NULL,
  version     text NOT NULL
) WITH (fillfactor = 50);

-- Partners fall into 256 shards. Only the worker that owns a shard sends for its partners.
CREATE TABLE shards (
  shard          smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 255),
  lease_id       uuid REFERENCES leases ON DELETE SET NULL,
  -- Incremented by every change of the owner.
  epoch          integer NOT NULL DEFAULT 0,
  since          timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX shards_lease ON shards (lease_id) WHERE lease_id IS NOT NULL;
INSERT INTO shards (shard) SELECT generate_series(0, 255);

CREATE TABLE partners (
  id                 uuid PRIMARY KEY,
  state              text NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
  settings           jsonb NOT NULL,
  -- The origin of its registered URL; written with the settings.
  registered_origin  text NOT NULL DEFAULT '',
  -- The start of its inactivity, and earlier periods of it: no notification's schedule runs meanwhile.
  stopped_at         timestamptz,
  pauses             tstzmultirange NOT NULL DEFAULT '{}',
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now()
);

-- Encryption, signing and webhook keys, sealed under the master key. Of an API key only the hash is stored.
CREATE TABLE partner_keys (
  partner_id   uuid NOT NULL REFERENCES partners,
  id           uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('apiKey', 'encryptionKey', 'signingKey', 'webhookSecret', 'callbackKey')),
  material     bytea NOT NULL,
  active_from  timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  seals        bigint NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL DEFAULT now(),
  -- For an additional API key: its name, and its scopes; NULL allows everything.
  name         text NOT NULL DEFAULT '',
  scopes       text[],
  -- For an API key: its last use, to the minute.
  last_used_at timestamptz,
  PRIMARY KEY (partner_id, id)
);
CREATE UNIQUE INDEX partner_keys_api_key ON partner_keys (material) WHERE kind = 'apiKey';

-- The service's own values, sealed under its master key: `check` detects another master key at once.
CREATE TABLE sealed_values (
  name    text PRIMARY KEY,
  sealed  bytea NOT NULL
);

-- The partner of each of the acquirer's terminals: two partners on one terminal would settle each other's batch. Small,
-- and without partner_id as the first key column, because it is read across partners.
CREATE TABLE terminal_claims (
  acquirer       text NOT NULL DEFAULT '',
  mid            text NOT NULL,
  tid            text NOT NULL,
  partner_id     uuid NOT NULL,
  -- By the operator; otherwise its first command claimed it.
  is_registered  boolean NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (acquirer, mid, tid)
);
CREATE INDEX terminal_claims_partner ON terminal_claims (partner_id, tid);

-- After an alert of a kind was sent, others of that kind wait until then.
CREATE TABLE alert_quiet (
  kind   text PRIMARY KEY,
  until  timestamptz NOT NULL
);
