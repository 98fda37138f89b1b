--! homes
-- Events in commit order, for the feed. Those of an older version count as committed by this migration.
ALTER TABLE events ADD COLUMN xid xid8 NOT NULL DEFAULT pg_current_xact_id();
CREATE INDEX events_commit_order ON events (xid, id);
