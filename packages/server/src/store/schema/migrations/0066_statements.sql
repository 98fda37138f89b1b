--! homes
-- Partners list their settled batches and their settlements, and get a statement of each day.
CREATE INDEX batches_of_terminal ON batches (partner_id, tid, settlement_id);
CREATE INDEX transactions_settlements ON transactions (partner_id, id) WHERE command = 'SETTLEMENT';
CREATE INDEX transactions_settlements_of_terminal ON transactions (partner_id, tid, id) WHERE command = 'SETTLEMENT';
-- A statement finds what was completed on its day by the ids, which begin with the time of the command. Only what took
-- longer has an entry here, so that the index costs nothing where commands complete.
CREATE INDEX transactions_slow ON transactions (partner_id, completed_at, id)
  WHERE completed_at - created_at > interval '10 minutes';
-- When it was DONE for the first time. Null of those that an earlier version ended: their due time is close to it.
ALTER TABLE reversals ADD COLUMN ended_at timestamptz;
CREATE INDEX reversals_ended ON reversals (partner_id, (coalesce(ended_at, due_at)), transaction_id)
  WHERE state = 'DONE';
