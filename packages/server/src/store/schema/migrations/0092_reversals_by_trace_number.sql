--! homes
-- An acquirer's answer that no command waits for names its message by the trace number. Only transactions that have a
-- Reversal have an entry.
CREATE INDEX transactions_reversed_trace_no ON transactions ((facts #>> '{fields,traceNo}'))
  WHERE reversal_state IS NOT NULL;
-- What read by this one reads by the new one.
DROP INDEX reversals_by_terminal;
