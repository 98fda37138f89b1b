--! homes
-- The Settlements of a terminal that ended as ERROR after their totals had been sent: the acquirer's answer may still
-- come, to any process. Kept for two days, with the numbers by which an answer names its message.
ALTER TABLE terminals ADD COLUMN unanswered_settlements jsonb;
CREATE INDEX terminals_unanswered ON terminals (tid) WHERE unanswered_settlements IS NOT NULL;
