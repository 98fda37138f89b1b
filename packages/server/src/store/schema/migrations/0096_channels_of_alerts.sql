--! homes
-- The channels that have accepted an alert which others have not: any instance repeats it for those alone.
ALTER TABLE events ADD COLUMN alert_accepted text[];
