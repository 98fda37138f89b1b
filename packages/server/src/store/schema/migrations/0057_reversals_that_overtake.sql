--! homes
-- Whether a 25 (no such record) to a Reversal is final depends on where its original was sent, and when.
-- The host, written before the message leaves. Null: not known.
ALTER TABLE transactions ADD COLUMN site text;
-- The last byte of the original had left by then.
ALTER TABLE reversals ADD COLUMN left_by timestamptz NOT NULL DEFAULT now();
