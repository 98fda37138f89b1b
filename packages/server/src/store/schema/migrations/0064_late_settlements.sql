--! homes
-- The acquirer's answer to a Settlement that had been aborted, with the batch: kept until the next Settlement reports
-- the batch (state closed), or until an operator resolves it, because something has entered the batch since (entered).
ALTER TABLE terminals ADD COLUMN late_settlement jsonb;
