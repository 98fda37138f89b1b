-- A terminal's open batch. It is CLOSING from the moment a settlement was asked for until the acquirer answered.
ALTER TABLE terminals
  ADD COLUMN batch_id        uuid NOT NULL DEFAULT gen_random_uuid(),
  ADD COLUMN batch_closing   boolean NOT NULL DEFAULT false,
  -- Of the commands in it, once there is one.
  ADD COLUMN batch_currency  text;

ALTER TABLE transactions
  ADD COLUMN batch_id           uuid,
  -- The Void, Complete or Reversal that holds it, or ended it: one at most.
  ADD COLUMN successor_id       uuid,
  ADD COLUMN successor_command  text,
  ADD COLUMN successor_state    text CHECK (successor_state IN ('in_flight', 'in_doubt', 'done')),
  -- Of its own Reversal.
  ADD COLUMN reversal_state     text CHECK (reversal_state IN ('pending', 'done', 'parked')),
  -- Not a transaction, but the memory that its reqId was reversed before it arrived.
  ADD COLUMN is_tombstone       boolean NOT NULL DEFAULT false,
  ADD CHECK ((successor_id IS NULL) = (successor_state IS NULL));

-- A settlement asks by terminal what is still in flight; a take-over asks for all of it.
DROP INDEX transactions_in_flight;
CREATE INDEX transactions_in_flight ON transactions (partner_id, tid) WHERE state = 'INIT';
CREATE INDEX transactions_batch ON transactions (partner_id, batch_id, id) WHERE batch_id IS NOT NULL;
CREATE INDEX transactions_original ON transactions (partner_id, original_id) WHERE original_id IS NOT NULL;

-- Batches that were settled; the open one stands in its terminal.
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
  closed_at         timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);

-- Reversals on their way to the acquirer, repeated until it answers. One for each transaction.
CREATE TABLE reversals (
  partner_id      uuid NOT NULL,
  transaction_id  uuid NOT NULL,
  tid             text NOT NULL,
  state           text NOT NULL DEFAULT 'PENDING' CHECK (state IN ('PENDING', 'DONE', 'PARKED')),
  -- The partner's REVERSAL that waits for it.
  requested_by    uuid,
  -- Taken by an instance, it is due again when that instance must have had its answer.
  due_at          timestamptz NOT NULL DEFAULT now(),
  tries           integer NOT NULL DEFAULT 0,
  response_code   text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, transaction_id)
);
CREATE INDEX reversals_due ON reversals (due_at) WHERE state = 'PENDING';
CREATE INDEX reversals_of_terminal ON reversals (partner_id, tid) WHERE state = 'PENDING';

-- Settlements and Batch Uploads under way: where each stands, so that any instance can go on with it.
CREATE TABLE settlements (
  partner_id      uuid NOT NULL,
  -- The SETTLEMENT's or BATCH_UPLOAD's transaction.
  id              uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('SETTLEMENT', 'BATCH_UPLOAD')),
  tid             text NOT NULL,
  batch_id        uuid NOT NULL,
  step            text NOT NULL DEFAULT 'waiting' CHECK (step IN ('waiting', 'sending', 'uploading')),
  -- The acquirer had other totals, and the batch was uploaded.
  is_uploaded     boolean NOT NULL DEFAULT false,
  -- The last transaction that was uploaded.
  uploaded_up_to  uuid,
  due_at          timestamptz NOT NULL DEFAULT now(),
  tries           integer NOT NULL DEFAULT 0,
  created_at      timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (partner_id, id)
);
CREATE INDEX settlements_due ON settlements (due_at);
