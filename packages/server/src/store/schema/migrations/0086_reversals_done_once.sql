--! homes
-- A Reversal that was done, and that a person sends again, is pending or parked: the statement of the day on which it
-- was done keeps its line.
DROP INDEX reversals_ended;
CREATE INDEX reversals_ended ON reversals (partner_id, (coalesce(ended_at, due_at)), transaction_id)
  WHERE ended_at IS NOT NULL OR state = 'DONE';
