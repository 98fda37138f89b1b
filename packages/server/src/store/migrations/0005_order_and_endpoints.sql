-- What decides when a pending notification may leave, beside its time.
ALTER TABLE pending
  -- The origin of its own callback URL; empty: the registered one. Each has a queue of its own, so that a dead one is skipped whole.
  ADD COLUMN origin         text NOT NULL DEFAULT '',
  -- It waits for the earlier ones of its chain.
  ADD COLUMN follows        boolean NOT NULL DEFAULT false,
  -- A settlement waits for the notifications of this batch.
  ADD COLUMN settles_batch  uuid;
DROP INDEX pending_due;
CREATE INDEX pending_due ON pending (partner_id, origin, due_at) WHERE instance_id IS NULL;
CREATE INDEX pending_chain ON pending (partner_id, chain_id, schedule_start);

-- The origin that a partner's registered URL has now; written with the settings.
ALTER TABLE partners ADD COLUMN registered_origin text NOT NULL DEFAULT '';

-- Callback endpoints that have failed: the circuit breaker. What is not here is closed.
CREATE TABLE endpoints (
  partner_id     uuid NOT NULL,
  id             uuid NOT NULL,
  -- https://host:port; for one that answered 410, the exact URL.
  target         text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('origin', 'url')),
  state          text NOT NULL CHECK (state IN ('closed', 'open', 'gone')),
  -- Failures in a row that count.
  failures       integer NOT NULL DEFAULT 0,
  last_reason    text,
  opened_at      timestamptz,
  -- While it is open: when one delivery may try it again. Whoever takes that one moves it ahead.
  probe_at       timestamptz,
  probes         integer NOT NULL DEFAULT 0,
  updated_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id),
  UNIQUE (partner_id, target)
);
