-- The batch that a switch put a transaction in, or settled by it: one value for its partner, mid, tid and batch number, so
-- that it is no batch of a terminal here. What is in it is found in the order it came, without its partner in front: no
-- other look-up goes along it.
ALTER TABLE transactions ADD COLUMN reported_batch uuid;
CREATE INDEX transactions_reported_batch ON transactions (reported_batch, created_at) WHERE reported_batch IS NOT NULL;

-- A settlement waits for what is pending of its batch. It looked through the batch's transactions for that, as many as
-- there are, twice a second: now the pending rows tell it themselves. As with the chain, the partner is not in front, so
-- that no plan takes the index for the key.
ALTER TABLE pending ADD COLUMN batch_id uuid;
UPDATE pending p SET batch_id = t.batch_id FROM notifications n, transactions t
WHERE n.partner_id = p.partner_id AND n.id = p.id AND t.partner_id = n.partner_id AND t.id = n.transaction_id
  AND t.batch_id IS NOT NULL;
CREATE INDEX pending_batch ON pending (batch_id, schedule_start) WHERE batch_id IS NOT NULL;
