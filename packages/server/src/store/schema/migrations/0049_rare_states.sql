--! homes
-- States that the operator lists, and that few rows have: only these rows have an entry.
CREATE INDEX transactions_declined ON transactions (partner_id, id) WHERE state = 'ERROR';
CREATE INDEX reversals_parked ON reversals (partner_id, transaction_id) WHERE state = 'PARKED';
