-- MACs under keys that the database does not have: of each entry of the audit, and of each row that grants rights, with
-- the number of the entry of its last change. Rows of older versions have none.
ALTER TABLE audit ADD COLUMN mac bytea;
ALTER TABLE operators ADD COLUMN audit_seq bigint, ADD COLUMN mac bytea;
ALTER TABLE partner_keys ADD COLUMN audit_seq bigint, ADD COLUMN mac bytea;

-- The entries that changed such a row. Only the newest counts, so that an old row that is copied back is refused.
CREATE TABLE row_seals (
  row_id  uuid NOT NULL,
  seq     bigint NOT NULL,
  PRIMARY KEY (row_id, seq)
);
CREATE TRIGGER row_seals_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON row_seals
  FOR EACH STATEMENT EXECUTE FUNCTION audit_is_append_only();

-- From this time and this entry on, all of them need a MAC.
CREATE TABLE sealing (
  only_one   boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  sealed_at  timestamptz NOT NULL DEFAULT now(),
  seq        bigint NOT NULL
);

-- It runs as the owner: the service's role can neither take the mark back nor move it.
CREATE FUNCTION seal_database(entry bigint) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  INSERT INTO sealing (seq) VALUES (entry);
  -- An older version writes no MAC, and does not find a token by its new hash: it does not start any more.
  UPDATE migrations SET breaking = true WHERE number = 70;
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION seal_database SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION seal_database FROM PUBLIC;
