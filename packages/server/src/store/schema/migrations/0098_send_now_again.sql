--! homes
-- How often people asked for the row to be sent now: what is under way was not the attempt for those that came since.
ALTER TABLE pending ADD COLUMN requests integer NOT NULL DEFAULT 0;
