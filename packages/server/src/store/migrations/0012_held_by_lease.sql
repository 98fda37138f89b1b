-- What is held under a lease stands together, so that leases that still run are passed by whole: no entry of theirs is
-- read, however many of those rows are gone already and could not be cleared away beside an open transaction.
DROP INDEX pending_held;
CREATE INDEX pending_held ON pending (instance_id, epoch) WHERE instance_id IS NOT NULL;
