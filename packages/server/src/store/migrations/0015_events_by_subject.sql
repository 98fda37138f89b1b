-- The operator sees a notification with what was recorded about it and its transaction.
CREATE INDEX events_subject ON events (partner_id, subject_id) WHERE subject_id IS NOT NULL;
