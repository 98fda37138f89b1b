--! homes
-- Tables that grow with partners' activity. All rows of one partner are in one home, and no statement needs two. Plain
-- PostgreSQL is one home, in the schema of the connection. On Citus each home is a schema, distributed as a whole to
-- one node. Every table has partner_id as the first column of its primary key.

CREATE TABLE terminals (
  partner_id        uuid NOT NULL,
  tid               text NOT NULL,
  mid               text NOT NULL,
  merchant_id       text NOT NULL DEFAULT '',
  merchant_name     text NOT NULL DEFAULT '',
  merchant_address  text NOT NULL DEFAULT '',
  device_id         text NOT NULL DEFAULT '',
  app_name          text NOT NULL DEFAULT '',
  -- The last assigned numbers; 0 before the first.
  trace_no          integer NOT NULL DEFAULT 0,
  invoice_no        integer NOT NULL DEFAULT 0,
  batch_no          integer NOT NULL DEFAULT 1,
  -- Its open batch. It is CLOSING from the request of a settlement until the acquirer answered.
  batch_id          uuid NOT NULL DEFAULT gen_random_uuid(),
  batch_closing     boolean NOT NULL DEFAULT false,
  -- The currency of its commands, once there is one.
  batch_currency    text,
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
  -- The command's own URL.
  callback_url          text,
  tid                   text,
  batch_no              text,
  batch_id              uuid,
  amount_minor          bigint,
  currency              text,
  facts                 json NOT NULL,
  -- Its first 64 characters: an index entry has a size limit.
  merchant_trans_id     text,
  -- The api lease of the process that runs it while it is INIT. Without that lease it is in doubt.
  lease_id              uuid,
  notification_id       uuid,
  -- The Void, Complete or Reversal that holds it, or ended it: at most one.
  successor_id          uuid,
  successor_command     text,
  successor_state       text CHECK (successor_state IN ('in_flight', 'in_doubt', 'done')),
  -- The state of its own Reversal.
  reversal_state        text CHECK (reversal_state IN ('pending', 'done', 'parked')),
  -- Not a transaction, but the record that its reqId was reversed before it arrived.
  is_tombstone          boolean NOT NULL DEFAULT false,
  -- The batch that a switch assigned it to, or settled with it: one value per partner, mid, tid and batch number.
  reported_batch        uuid,
  -- When a settlement reported by a switch is compared with the ledger; null afterwards, and for everything else.
  compare_at            timestamptz,
  -- A reported Void whose original is unknown: its notification is created when the original is known, or at this time.
  notify_at             timestamptz,
  created_at            timestamptz NOT NULL DEFAULT now(),
  completed_at          timestamptz,
  PRIMARY KEY (partner_id, id),
  CHECK ((successor_id IS NULL) = (successor_state IS NULL))
);
-- While a table has few rows, all its indexes that begin with the partner have the same cost for the planner, and a
-- connection keeps the plan that it made then. Measured: planned below 1,000 rows, the look-up of a reqId used the
-- primary key with the partner only; later it read 600 pages per row instead of 4. So only one of two indexes must be
-- usable for a look-up: the statement prevents the use of the partner by `(t.partner_id = i.partner_id) IS TRUE`. This
-- one is the idempotency key of a command; reports of a switch have another.
CREATE UNIQUE INDEX transactions_req_id ON transactions (req_id, partner_id) WHERE origin = 'command';
CREATE UNIQUE INDEX transactions_external_id ON transactions (external_id, partner_id) WHERE origin = 'switch';
CREATE INDEX transactions_reported_req_id ON transactions (partner_id, req_id)
  WHERE origin = 'switch' AND req_id IS NOT NULL;
-- A settlement reads commands in flight by terminal; a take-over reads all of them.
CREATE INDEX transactions_in_flight ON transactions (partner_id, tid) WHERE state = 'INIT';
-- A batch's rows are read by state, which skips declined ones. Measured: it read 100,000 declined rows before.
CREATE INDEX transactions_batch ON transactions (partner_id, batch_id, state, id) WHERE batch_id IS NOT NULL;
CREATE INDEX transactions_original ON transactions (partner_id, original_id) WHERE original_id IS NOT NULL;
-- In byte order: a prefix search reads a range of the index.
CREATE INDEX transactions_merchant_trans_id ON transactions (partner_id, merchant_trans_id COLLATE "C")
  WHERE merchant_trans_id IS NOT NULL;
-- The ledger drops rows past retention in the order of their ids, which begin with their time. A switch may assign ids
-- of another kind: only those are in this index.
CREATE INDEX transactions_untimed_id ON transactions (partner_id, created_at, id)
  WHERE get_byte(uuid_send(id), 6) >> 4 <> 7;
CREATE INDEX transactions_reported_batch ON transactions (reported_batch, created_at) WHERE reported_batch IS NOT NULL;
CREATE INDEX transactions_compare ON transactions (compare_at) WHERE compare_at IS NOT NULL;
CREATE INDEX transactions_notify_at ON transactions (notify_at) WHERE notify_at IS NOT NULL;
-- A terminal's mid cannot change while a PreAuth is open on it.
CREATE INDEX transactions_open_preauth ON transactions (partner_id, tid)
  WHERE command = 'PREAUTH' AND state = 'SUCCESS' AND successor_id IS NULL;

-- Settled batches; the open one is in its terminal's row.
CREATE TABLE batches (
  partner_id        uuid NOT NULL,
  id                uuid NOT NULL,
  tid               text NOT NULL,
  mid               text NOT NULL,
  batch_no          text NOT NULL,
  currency          text,
  settlement_id     uuid NOT NULL,
  sale_quantity     integer NOT NULL,
  sale_total_minor  bigint NOT NULL,
  void_quantity     integer NOT NULL,
  void_total_minor  bigint NOT NULL,
  refund_quantity   integer NOT NULL,
  refund_total_minor  bigint NOT NULL,
  closed_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);

-- Reversals to be sent to the acquirer, repeated until it answers. One per transaction.
CREATE TABLE reversals (
  partner_id      uuid NOT NULL,
  transaction_id  uuid NOT NULL,
  tid             text NOT NULL,
  state           text NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'DONE', 'PARKED')),
  -- The partner's REVERSAL that waits for it.
  requested_by    uuid,
  -- After an instance claimed it, it is due again when that instance must have its answer.
  due_at          timestamptz NOT NULL DEFAULT now(),
  tries           integer NOT NULL DEFAULT 0,
  response_code   text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, transaction_id)
);
CREATE INDEX reversals_due ON reversals (due_at) WHERE state = 'PENDING';
CREATE INDEX reversals_of_terminal ON reversals (partner_id, tid) WHERE state = 'PENDING';
-- An answer that arrives after its instance died names a terminal, and no partner.
CREATE INDEX reversals_by_terminal ON reversals (tid, created_at);

-- Cards that later messages of their chain may need, if the acquirer wants them: sealed, and deleted once none can.
CREATE TABLE cards (
  partner_id  uuid NOT NULL,
  chain_id    uuid NOT NULL,
  sealed      bytea NOT NULL,
  -- When to check next whether it is still needed.
  look_at     timestamptz NOT NULL DEFAULT now() + interval '1 minute',
  PRIMARY KEY (partner_id, chain_id)
);
CREATE INDEX cards_look_at ON cards (look_at);

-- Running settlements and Batch Uploads: their current step, so that any instance can continue.
CREATE TABLE settlements (
  partner_id      uuid NOT NULL,
  -- The transaction of the SETTLEMENT or BATCH_UPLOAD.
  id              uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('SETTLEMENT', 'BATCH_UPLOAD')),
  tid             text NOT NULL,
  batch_id        uuid NOT NULL,
  step            text NOT NULL DEFAULT 'waiting' CHECK (step IN ('waiting', 'sending', 'uploading')),
  -- The acquirer's totals differed, and the batch was uploaded.
  is_uploaded     boolean NOT NULL DEFAULT false,
  -- The last uploaded transaction.
  uploaded_up_to  uuid,
  -- The numbers of the messages being sent: each upload, and the settlement after them, has its own. They stay until
  -- the next step, so that an instance that continues after a crash repeats the same messages.
  trace_no        integer,
  trace_count     integer,
  numbered_at     timestamptz,
  due_at          timestamptz NOT NULL DEFAULT now(),
  tries           integer NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE INDEX settlements_due ON settlements (due_at);

-- History: a notification is its frozen IPN, never updated. Its id begins with its time, and so identifies its day.
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
  -- Commit order for the pull cursor, because ids are not in commit order.
  xid                   xid8 NOT NULL DEFAULT pg_current_xact_id(),
  created_at            timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
) PARTITION BY RANGE (id);
-- Used only by statements that compare xid, and repeat this condition.
CREATE INDEX notifications_commit_order ON notifications (partner_id, xid, id) WHERE xid > '0';

-- History: each POST.
CREATE TABLE attempts (
  partner_id    uuid NOT NULL,
  -- The id of the notification.
  id            uuid NOT NULL,
  -- Incremented by each redelivery; attempts are numbered from 1 in each.
  round         integer NOT NULL,
  attempt_no    integer NOT NULL,
  -- The delivery lease under which it was made.
  lease_id      uuid NOT NULL,
  started_at    timestamptz NOT NULL,
  duration_ms   integer NOT NULL,
  url           text NOT NULL,
  address       text,
  http_status   integer,
  reason        text,
  detail        text,
  answer        bytea,
  key_id        text,
  PRIMARY KEY (partner_id, id, round, attempt_no, lease_id)
) PARTITION BY RANGE (id);

-- History is complete since then: every earlier day was dropped. One row.
CREATE TABLE history (
  only_row   boolean PRIMARY KEY DEFAULT true CHECK (only_row),
  kept_from  timestamptz NOT NULL
);
INSERT INTO history (kept_from) VALUES ('epoch');

-- Notifications still to be delivered, and nothing else: small, and busy. Nobody locks or claims a row: the owner of
-- its shard reads it, and each outcome names its round and attempt.
CREATE TABLE pending (
  -- The last byte of the partner's id, as `shardOf` computes it.
  shard           smallint NOT NULL GENERATED ALWAYS AS (get_byte(uuid_send(partner_id), 15)::smallint) STORED,
  partner_id      uuid NOT NULL,
  -- The id of the notification.
  id              uuid NOT NULL,
  -- The origin of its own callback URL; empty: the registered one. Notifications for a URL that answered 410 are in a
  -- queue of that URL.
  queue           text NOT NULL DEFAULT '',
  due_at          timestamptz NOT NULL,
  round           integer NOT NULL DEFAULT 0,
  attempts_made   integer NOT NULL DEFAULT 0,
  schedule_start  timestamptz NOT NULL DEFAULT now(),
  chain_id        uuid NOT NULL,
  -- It waits for the earlier ones of its chain.
  follows         boolean NOT NULL DEFAULT false,
  -- The batch of its transaction.
  batch_id        uuid,
  -- A settlement waits for the notifications of this batch.
  settles_batch   uuid,
  bytes           integer NOT NULL,
  to_registered   boolean NOT NULL DEFAULT false,
  PRIMARY KEY (partner_id, id)
) WITH (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 50000,
  autovacuum_vacuum_cost_delay = 0
);
-- Queue by queue, each in the order of due times.
CREATE INDEX pending_due ON pending (shard, partner_id, queue, due_at, id);
-- Without the partner as the first column, so that no plan uses these instead of the key.
CREATE INDEX pending_chain ON pending (chain_id, schedule_start);
CREATE INDEX pending_batch ON pending (batch_id, schedule_start) WHERE batch_id IS NOT NULL;

-- Parked: given up for now, kept, replayable. Its content is copied only when its day of history is dropped.
CREATE TABLE parked (
  partner_id     uuid NOT NULL,
  id             uuid NOT NULL,
  chain_id       uuid NOT NULL,
  round          integer NOT NULL,
  attempts_made  integer NOT NULL,
  bytes          integer NOT NULL,
  reason         text NOT NULL,
  notification   jsonb,
  parked_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
-- A notification that outlived its day of history is also found by its id.
CREATE INDEX parked_with_content ON parked (partner_id, id) WHERE notification IS NOT NULL;

-- The circuit breakers of callback endpoints that have failed. An endpoint without a row is closed.
CREATE TABLE endpoints (
  shard          smallint NOT NULL GENERATED ALWAYS AS (get_byte(uuid_send(partner_id), 15)::smallint) STORED,
  partner_id     uuid NOT NULL,
  id             uuid NOT NULL,
  -- https://host:port; after a 410, the exact URL.
  target         text NOT NULL,
  -- Its queue of pending: the origin; for a URL that is gone, its origin and SHA-256, because a URL is too long for an
  -- index entry.
  queue          text NOT NULL,
  kind           text NOT NULL CHECK (kind IN ('origin', 'url')),
  state          text NOT NULL CHECK (state IN ('closed', 'open', 'gone')),
  -- Consecutive failures.
  failures       integer NOT NULL DEFAULT 0,
  last_reason    text,
  opened_at      timestamptz,
  -- While it is tripped: when one delivery may probe it.
  probe_at       timestamptz,
  probes         integer NOT NULL DEFAULT 0,
  -- The shard's epoch of the last write: a change by an earlier owner is dropped.
  epoch          integer NOT NULL DEFAULT 0,
  -- Incremented when a person changes it: changes based on older knowledge are dropped.
  control_no     integer NOT NULL DEFAULT 0,
  updated_at     timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE UNIQUE INDEX endpoints_queue ON endpoints (partner_id, queue);
CREATE INDEX endpoints_shard ON endpoints (shard);
-- Owners poll these every 5 s, however many URLs are gone.
CREATE INDEX endpoints_changed_by_hand ON endpoints (shard) WHERE control_no > 0;

-- Delivery figures, by minute for a day and by hour for a week: per partner, and for all under the nil id. A histogram
-- has a count for each bucket of notifications/figures.ts.
CREATE TABLE delivery_figures (
  partner_id   uuid NOT NULL,
  grain        text NOT NULL CHECK (grain IN ('minute', 'hour')),
  at           timestamptz NOT NULL,
  accepted     integer NOT NULL,
  failed       integer NOT NULL,
  parked       integer NOT NULL,
  attempt_ms   integer[] NOT NULL,
  delivery_ms  integer[] NOT NULL,
  PRIMARY KEY (partner_id, grain, at)
) WITH (fillfactor = 50);
CREATE INDEX delivery_figures_old ON delivery_figures (grain, at);

-- Events for the operator, including alerts: those are sent until every channel accepted them.
CREATE TABLE events (
  partner_id    uuid NOT NULL,
  id            uuid NOT NULL,
  kind          text NOT NULL,
  subject_id    uuid,
  detail        jsonb NOT NULL,
  alert_due_at  timestamptz,
  alert_tries   integer NOT NULL DEFAULT 0,
  -- The first alert of its group, once they were tried.
  alert_group   uuid,
  created_at    timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE INDEX events_alerts_due ON events (alert_due_at) WHERE alert_due_at IS NOT NULL;
-- The operator sees a notification with the events of it and its transaction.
CREATE INDEX events_subject ON events (partner_id, subject_id) WHERE subject_id IS NOT NULL;

-- Days of history are created and dropped by the service's role, which may lack the right to change the schema: these
-- functions run as its owner, and do nothing else. CREATE, then ATTACH: unlike CREATE … PARTITION OF, this never blocks
-- readers and writers of the parent.
CREATE FUNCTION create_history_partition(parent text, name text, lowest uuid, beyond uuid) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF parent NOT IN ('notifications', 'attempts') OR name !~ ('^' || parent || '_[0-9]{8}$') THEN
    RAISE EXCEPTION 'not a partition of history: %', name;
  END IF;
  EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', name, parent);
  EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, name, lowest, beyond);
END $$;

CREATE FUNCTION drop_history_partition(parent text, name text) RETURNS void
  LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  IF parent NOT IN ('notifications', 'attempts') OR name !~ ('^' || parent || '_[0-9]{8}$') THEN
    RAISE EXCEPTION 'not a partition of history: %', name;
  END IF;
  EXECUTE format('ALTER TABLE %I DETACH PARTITION %I', parent, name);
  EXECUTE format('DROP TABLE %I', name);
END $$;

-- A function that runs as another role must look for its tables only in its own schema.
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION create_history_partition SET search_path = %I, pg_temp', current_schema());
  EXECUTE format('ALTER FUNCTION drop_history_partition SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION create_history_partition, drop_history_partition FROM PUBLIC;
