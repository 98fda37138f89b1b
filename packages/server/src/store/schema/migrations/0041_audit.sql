-- The audit. Each entry contains the hash of the previous one, so that none can be changed or removed unnoticed. The
-- hash covers the text of each column as stored: before and after are JSON as it was written.
CREATE TABLE audit (
  seq       bigint PRIMARY KEY,
  at_ms     bigint NOT NULL,
  actor     text NOT NULL,
  role      text NOT NULL,
  token_id  text NOT NULL,
  address   text NOT NULL,
  action    text NOT NULL,
  subject   text NOT NULL,
  before    text NOT NULL,
  after     text NOT NULL,
  hash      text NOT NULL
);
CREATE INDEX audit_actor ON audit (actor, seq);
CREATE INDEX audit_subject ON audit (subject, seq);
CREATE INDEX audit_action ON audit (action, seq);

-- The last entry dropped by retention: the chain continues from its hash.
CREATE TABLE audit_start (
  only_one  boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  seq       bigint NOT NULL,
  hash      text NOT NULL
);
INSERT INTO audit_start (seq, hash) VALUES (0, repeat('0', 64));

CREATE FUNCTION audit_is_append_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND OLD.seq <= (SELECT seq FROM audit_start) THEN RETURN OLD; END IF;
  RAISE EXCEPTION 'the audit is append-only';
END $$;
CREATE TRIGGER audit_append_only BEFORE UPDATE OR TRUNCATE ON audit
  FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();
CREATE TRIGGER audit_keeps_its_days BEFORE DELETE ON audit
  FOR EACH ROW EXECUTE FUNCTION audit_is_append_only();

-- Drops the oldest entries, at most rows_max of them, and never the newest, from which the numbers continue. It runs as
-- the owner: the service's role may delete nothing here, and nothing younger than 90 days.
CREATE FUNCTION drop_audit_before(before_ms bigint, rows_max integer) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  dropped bigint;
  latest record;
BEGIN
  IF before_ms > (extract(epoch FROM now()) - 90 * 86400) * 1000 THEN
    RAISE EXCEPTION 'the audit is kept for 90 days at least';
  END IF;
  PERFORM pg_advisory_xact_lock(4820041);
  SELECT o.seq, o.hash INTO latest
  FROM (SELECT seq, hash, at_ms FROM audit ORDER BY seq LIMIT rows_max) AS o
  WHERE o.seq < (SELECT max(seq) FROM audit)
    AND NOT EXISTS (SELECT FROM audit y WHERE y.seq <= o.seq AND y.at_ms >= before_ms)
  ORDER BY o.seq DESC LIMIT 1;
  IF latest IS NULL THEN RETURN 0; END IF;
  UPDATE audit_start SET seq = latest.seq, hash = latest.hash;
  DELETE FROM audit WHERE seq <= latest.seq;
  GET DIAGNOSTICS dropped = ROW_COUNT;
  RETURN dropped;
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION drop_audit_before SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION drop_audit_before FROM PUBLIC;
