-- The retention that the table itself enforces: the owner sets it, by PAYBELL_AUDIT_DAYS.
ALTER TABLE audit_start ADD COLUMN days integer NOT NULL DEFAULT 1095 CHECK (days >= 90);

-- A number beyond the next one would leave a gap that nothing could fill, or use up the numbers.
CREATE FUNCTION audit_continues() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.seq <> coalesce((SELECT max(seq) FROM audit), (SELECT seq FROM audit_start), 0) + 1 THEN
    RAISE EXCEPTION 'the number of an entry follows the last one';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER audit_continues BEFORE INSERT ON audit FOR EACH ROW EXECUTE FUNCTION audit_continues();

-- As before, and now with an entry of its own: the transaction that drops has appended it as the last one. It enforces
-- the retention by the clock of the database.
CREATE OR REPLACE FUNCTION drop_audit_before(before_ms bigint, rows_max integer) RETURNS bigint
  LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  dropped bigint;
  latest record;
  kept integer;
BEGIN
  SELECT days INTO kept FROM audit_start;
  IF before_ms > (extract(epoch FROM now()) - kept * 86400) * 1000 THEN
    RAISE EXCEPTION 'the audit is kept for % days: the owner of the schema changes that by `paybell migrate`', kept;
  END IF;
  PERFORM pg_advisory_xact_lock(4820041);
  IF NOT EXISTS (
    SELECT FROM audit a WHERE a.seq = (SELECT max(seq) FROM audit) AND a.action = 'dropOldAudit'
      AND a.xmin = pg_current_xact_id()::xid) THEN
    RAISE EXCEPTION 'the drop of old entries needs an entry of its own in the same transaction';
  END IF;
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
