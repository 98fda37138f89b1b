-- Clearing files of acquirers. A file that was read whole has a row; its lines wait in chunks until they are matched.
CREATE TABLE clearing_files (
  id           uuid PRIMARY KEY,
  -- Empty: the acquirer of the settings.
  acquirer     text NOT NULL,
  sha256       bytea NOT NULL,
  name         text NOT NULL,
  state        text NOT NULL DEFAULT 'matching' CHECK (state IN ('matching', 'done')),
  lines        integer NOT NULL,
  chunks       integer NOT NULL,
  -- By kind and currency.
  totals       jsonb NOT NULL,
  first_day    date NOT NULL,
  next_chunk   integer NOT NULL DEFAULT 0,
  matched      integer NOT NULL DEFAULT 0,
  -- The instance that matches it holds it until then.
  due_at       timestamptz NOT NULL DEFAULT now(),
  received_at  timestamptz NOT NULL DEFAULT now(),
  done_at      timestamptz
);
CREATE UNIQUE INDEX clearing_files_once ON clearing_files (acquirer, sha256);
CREATE INDEX clearing_files_due ON clearing_files (due_at) WHERE state = 'matching';

CREATE TABLE clearing_chunks (
  file_id   uuid NOT NULL,
  chunk_no  integer NOT NULL,
  -- JSON, without card numbers.
  lines     text NOT NULL,
  read_at   timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (file_id, chunk_no)
);

-- How far the ledger was copied into the books of an acquirer that has had a file, and judged.
CREATE TABLE clearing_acquirers (
  acquirer     text PRIMARY KEY,
  copied_from  timestamptz NOT NULL,
  copied_to    timestamptz NOT NULL,
  judged_to    timestamptz NOT NULL
);
