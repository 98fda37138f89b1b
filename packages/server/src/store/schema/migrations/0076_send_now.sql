--! homes
-- Attempts of the round that people asked for while it was pending: the retry schedule does not count them.
ALTER TABLE pending ADD COLUMN asked integer NOT NULL DEFAULT 0;
-- The next attempt is such a one.
ALTER TABLE pending ADD COLUMN is_asked boolean NOT NULL DEFAULT false;
