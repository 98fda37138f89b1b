-- A row of pending is found by its key. Measured: planned while the table was almost empty, the claim, the outcomes and
-- what is given back went along this index instead, by its partner alone, and read all that the partner had pending for
-- each row. Without the partner in front it cannot be taken for the key; a chain's id is its own without it.
DROP INDEX pending_chain;
CREATE INDEX pending_chain ON pending (chain_id, schedule_start);
