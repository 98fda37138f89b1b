-- The queue of pending that an endpoint stands for: the origin; for a URL that is gone, its origin and its SHA-256,
-- because a URL is too long for an entry of an index. What waits for such a URL is moved into that queue, which is
-- skipped whole.
ALTER TABLE endpoints ADD COLUMN queue text;
UPDATE endpoints SET queue = target;
ALTER TABLE endpoints ALTER COLUMN queue SET NOT NULL;
ALTER TABLE endpoints DROP CONSTRAINT endpoints_partner_id_target_key;
CREATE UNIQUE INDEX endpoints_queue ON endpoints (partner_id, queue);
-- Read by every instance every second.
CREATE INDEX endpoints_troubled ON endpoints (partner_id, queue) WHERE state <> 'closed' OR failures > 0;

-- What waits while its endpoint is open is parked when its schedule is over: the longest waiting of a queue, without a
-- look at the others.
CREATE INDEX pending_waiting ON pending (partner_id, origin, schedule_start) WHERE instance_id IS NULL;
