-- What all partners share. Tables that grow with what partners do are in 0002_homes.sql.

-- Who is alive: processes that run commands (api), threads that send (delivery). A holder raises its beat every second; a
-- row whose beat stands still is deleted by others, and an id never comes back.
CREATE TABLE leases (
  id          uuid PRIMARY KEY,
  kind        text NOT NULL CHECK (kind IN ('api', 'delivery')),
  beat        bigint NOT NULL DEFAULT 0,
  beaten_at   timestamptz NOT NULL DEFAULT now(),
  started_at  timestamptz NOT NULL DEFAULT now(),
  host        text NOT NULL,
  version     text NOT NULL
) WITH (fillfactor = 50);

-- Partners fall into 256 shards; the worker that owns a shard is the only one that sends for its partners.
CREATE TABLE shards (
  shard          smallint PRIMARY KEY CHECK (shard BETWEEN 0 AND 255),
  lease_id       uuid REFERENCES leases ON DELETE SET NULL,
  -- Raised by every change of the owner.
  epoch          integer NOT NULL DEFAULT 0,
  since          timestamptz NOT NULL DEFAULT now()
) WITH (fillfactor = 50);
CREATE INDEX shards_lease ON shards (lease_id) WHERE lease_id IS NOT NULL;
INSERT INTO shards (shard) SELECT generate_series(0, 255);

CREATE TABLE partners (
  id                 uuid PRIMARY KEY,
  state              text NOT NULL CHECK (state IN ('active', 'paused', 'disabled')),
  settings           jsonb NOT NULL,
  -- The origin that its registered URL has now; written with the settings.
  registered_origin  text NOT NULL DEFAULT '',
  -- Since when it is not active, and when it was not before: no notification's schedule runs meanwhile.
  stopped_at         timestamptz,
  pauses             tstzmultirange NOT NULL DEFAULT '{}',
  created_at         timestamptz NOT NULL DEFAULT now(),
  updated_at         timestamptz NOT NULL DEFAULT now()
);

-- Encryption, signing and webhook keys, sealed under the master key. An API key is stored as its hash alone.
CREATE TABLE partner_keys (
  partner_id   uuid NOT NULL REFERENCES partners,
  id           uuid NOT NULL,
  kind         text NOT NULL CHECK (kind IN ('apiKey', 'encryptionKey', 'signingKey', 'webhookSecret', 'callbackKey')),
  material     bytea NOT NULL,
  active_from  timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  seals        bigint NOT NULL DEFAULT 0,
  created_at   timestamptz NOT NULL DEFAULT now(),
  -- Of an API key that was made beside the first one: what it is for, and what it allows; NULL is everything.
  name         text NOT NULL DEFAULT '',
  scopes       text[],
  -- Of an API key, to the minute.
  last_used_at timestamptz,
  PRIMARY KEY (partner_id, id)
);
CREATE UNIQUE INDEX partner_keys_api_key ON partner_keys (material) WHERE kind = 'apiKey';

-- Values of the service itself, sealed under its master key: by `check` another master key is recognised at once.
CREATE TABLE sealed_values (
  name    text PRIMARY KEY,
  sealed  bytea NOT NULL
);

-- Whose a terminal of the acquirer is: two partners on one would settle each other's batch. Small, and without partner_id
-- in front, because it is asked across partners.
CREATE TABLE terminal_claims (
  acquirer       text NOT NULL DEFAULT '',
  mid            text NOT NULL,
  tid            text NOT NULL,
  partner_id     uuid NOT NULL,
  -- By the operator; otherwise it was claimed by its first command.
  is_registered  boolean NOT NULL,
  created_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (acquirer, mid, tid)
);
CREATE INDEX terminal_claims_partner ON terminal_claims (partner_id, tid);

-- After one of a kind was told, others of that kind wait until then.
CREATE TABLE alert_quiet (
  kind   text PRIMARY KEY,
  until  timestamptz NOT NULL
);
