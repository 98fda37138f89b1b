-- From this time on every notification needs a MAC, those of older versions too.
ALTER TABLE sealing ADD COLUMN contents_at timestamptz;

CREATE FUNCTION contents_are_sealed() RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  UPDATE sealing SET contents_at = now() WHERE contents_at IS NULL;
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION contents_are_sealed SET search_path = %I, pg_temp', current_schema());
END $$;
REVOKE ALL ON FUNCTION contents_are_sealed FROM PUBLIC;
