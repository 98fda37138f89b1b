--! homes
-- Completed transactions of acquirers that send clearing files, by what a line of a file may name. Copied when a file
-- comes, so that an index of them costs a Sale nothing.
CREATE TABLE clearing_books (
  partner_id      uuid NOT NULL,
  transaction_id  uuid NOT NULL,
  acquirer        text NOT NULL,
  ref_id          text NOT NULL,
  trace_no        text NOT NULL,
  tid             text NOT NULL,
  amount          text NOT NULL,
  currency        text NOT NULL,
  completed_at    timestamptz NOT NULL,
  PRIMARY KEY (partner_id, transaction_id)
);
CREATE INDEX clearing_books_ref ON clearing_books (ref_id, acquirer) WHERE ref_id <> '';
CREATE INDEX clearing_books_trace ON clearing_books (trace_no, tid, acquirer);
CREATE INDEX clearing_books_completed ON clearing_books USING brin (completed_at);

-- The line that a transaction was found in: at most one.
CREATE TABLE clearing_matches (
  partner_id      uuid NOT NULL,
  transaction_id  uuid NOT NULL,
  file_id         uuid NOT NULL,
  line_no         integer NOT NULL,
  PRIMARY KEY (partner_id, transaction_id)
);

-- Exceptions that a person works off, lines that wait for their transaction, and fees.
CREATE TABLE clearing_entries (
  -- Nil: not known.
  partner_id      uuid NOT NULL,
  id              uuid NOT NULL,
  kind            text NOT NULL CHECK (kind IN ('missing_here', 'missing_there', 'different', 'chargeback', 'fee')),
  state           text NOT NULL CHECK (state IN ('waiting', 'open', 'resolved', 'kept')),
  acquirer        text NOT NULL,
  transaction_id  uuid,
  file_id         uuid NOT NULL,
  -- Null: of a transaction that no file has.
  line_no         integer,
  line            jsonb,
  differences     jsonb NOT NULL,
  -- The proof of delivery of a chargeback's transaction.
  proof           jsonb,
  due_at          timestamptz,
  reason          text,
  created_at      timestamptz NOT NULL DEFAULT now(),
  resolved_at     timestamptz,
  PRIMARY KEY (partner_id, id)
);
CREATE UNIQUE INDEX clearing_entries_line ON clearing_entries (file_id, line_no, partner_id) WHERE line_no IS NOT NULL;
CREATE UNIQUE INDEX clearing_entries_missing ON clearing_entries (transaction_id, partner_id)
  WHERE kind = 'missing_there';
CREATE INDEX clearing_entries_transaction ON clearing_entries (transaction_id) WHERE transaction_id IS NOT NULL;
CREATE INDEX clearing_entries_state ON clearing_entries (state, id);
CREATE INDEX clearing_entries_file ON clearing_entries (file_id, kind, state);
