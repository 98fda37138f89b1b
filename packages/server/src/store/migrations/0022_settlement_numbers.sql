-- The numbers of what is being sent: each upload, and the settlement that follows them, is a message of its own. They stay
-- until the next step, so that whoever goes on after a crash repeats the same messages.
ALTER TABLE settlements
  ADD COLUMN trace_no     integer,
  ADD COLUMN trace_count  integer,
  ADD COLUMN numbered_at  timestamptz;
