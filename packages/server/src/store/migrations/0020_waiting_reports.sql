-- A reported Void whose original is not known yet: its notification is made once that is, or when this time is over.
ALTER TABLE transactions ADD COLUMN notify_at timestamptz;
CREATE INDEX transactions_notify_at ON transactions (notify_at) WHERE notify_at IS NOT NULL;
