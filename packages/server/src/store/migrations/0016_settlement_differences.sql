-- When a settlement that a switch reported is compared with the ledger; null once it was, and for everything else.
ALTER TABLE transactions ADD COLUMN compare_at timestamptz;
CREATE INDEX transactions_compare ON transactions (compare_at) WHERE compare_at IS NOT NULL;
