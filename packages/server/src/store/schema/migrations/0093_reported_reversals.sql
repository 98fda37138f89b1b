--! homes
-- A statement has the Reversals that a switch reported. Those of a day, by the transactions that they undid:
CREATE INDEX transactions_reported_reversals ON transactions (partner_id, completed_at, original_id)
  WHERE command = 'REVERSAL' AND origin = 'switch' AND original_id IS NOT NULL;
-- And of one transaction, if it was reported after its Reversal.
CREATE INDEX transactions_early_reversals ON transactions (partner_id, original_external_id)
  WHERE command = 'REVERSAL' AND origin = 'switch' AND original_id IS NULL;
