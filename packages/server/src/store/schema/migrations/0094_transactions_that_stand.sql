--! homes
-- A parked Reversal may end because its transaction stands: the acquirer refuses for good to undo it. The new checks
-- allow more than the old ones did, so that no row has to be read again. Citus adds each in a statement of its own.
ALTER TABLE reversals DROP CONSTRAINT reversals_state_check;
ALTER TABLE reversals
  ADD CONSTRAINT reversals_state_check CHECK (state IN ('PENDING', 'DONE', 'PARKED', 'STANDS')) NOT VALID;
ALTER TABLE reversals ADD COLUMN stood_at timestamptz;
ALTER TABLE transactions DROP CONSTRAINT transactions_reversal_state_check;
ALTER TABLE transactions ADD CONSTRAINT transactions_reversal_state_check
  CHECK (reversal_state IN ('pending', 'done', 'parked', 'stands')) NOT VALID;
-- The statement of that day has it.
CREATE INDEX reversals_stood ON reversals (partner_id, stood_at, transaction_id) WHERE stood_at IS NOT NULL;
