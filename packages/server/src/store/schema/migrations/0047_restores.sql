-- Restores of the database from a backup. `paybell restore` names one by the parameter paybell.restored of the server,
-- and the first start on such a database adds its row, once it has put aside what was pending.
CREATE TABLE restores (
  name          text PRIMARY KEY,
  -- The last beat of any lease in the restored data: the ledger ends there. Null: nothing ran at the time.
  ends_at       timestamptz,
  held_at       timestamptz NOT NULL DEFAULT now(),
  -- Notifications that were pending.
  held          bigint NOT NULL,
  -- Commands under an earlier lease were in flight at that time. They stay so until the release.
  leases_below  uuid NOT NULL,
  released_at   timestamptz
);

-- Without a lease no instance runs a command or sends a notification. An instance that was running when the database
-- was restored under it would go on with both: it gets no lease until a start has put aside what was pending.
CREATE FUNCTION require_held_restore() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  restored text := coalesce(current_setting('paybell.restored', true), '');
BEGIN
  IF restored <> '' AND NOT EXISTS (SELECT FROM restores WHERE name = restored) THEN
    RAISE EXCEPTION 'the database is that of the restore %, and no instance was started on it yet', restored;
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER leases_after_restore BEFORE INSERT OR UPDATE ON leases
  FOR EACH STATEMENT EXECUTE FUNCTION require_held_restore();
