import type { PoolClient } from "pg";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { Undecided, UnmatchedAnswerStore } from "../../ledger/exchange/unmatched-answers.ts";
import type { DueReversal, ReversalStore } from "../../ledger/reversals/reverser.ts";
import { approvedCode, unknownCode } from "../../response-codes.ts";
import { dueClaim } from "../database/claims.ts";
import type { Homes } from "../database/homes.ts";
import { prepared, type Statement } from "../database/statement.ts";
import { despiteConflicts, inTransaction } from "../database/transaction.ts";
import { insertEvents } from "../events.ts";
import { currencyThatCounts } from "../terminals/sequences.ts";
import { answerable, isStanding, openReversal } from "../transactions/conditions.ts";

const claim = dueClaim<DueReversal>({
  table: "reversals",
  key: "transaction_id",
  dueAt: "due_at",
  where: "r.state = 'PENDING'",
  reads: `floor(extract(epoch FROM r.created_at) * 1000)::float8 AS queued_at_ms,
        extract(epoch FROM now() - r.left_by)::float8 * 1000 AS since_left_ms`,
  changes: "tries = r.tries + 1",
  returning: `r.transaction_id AS "transactionId", r.tries, due.queued_at_ms AS "queuedAtMs",
      coalesce(r.response_code, '') AS "lastCode", due.since_left_ms AS "sinceLeftMs"`,
});

// If a repetition was requested meanwhile, the try count differs: then this instance must not set the due time. A 25 stays
// in place of later codes, because it decides what a 94 means.
const postpone = prepared(`
  UPDATE reversals SET due_at = now() + $3 * interval '1 millisecond',
    response_code = CASE WHEN response_code = '${unknownCode}' THEN response_code ELSE coalesce(nullif($5, ''), response_code) END
  WHERE partner_id = $1 AND transaction_id = $2 AND state = 'PENDING' AND tries = $4`);

const noteUnknown = prepared(`
  UPDATE reversals SET response_code = '${unknownCode}'
  WHERE partner_id = $1 AND transaction_id = $2 AND state = 'PENDING'`);

// Reversed: what it held is free, and a partner's REVERSAL that waited for it has ended its original. The answer to a
// try that is not the last requested one says nothing about a later late approval.
const endWhere = (standing: string) => `
    WITH clock AS MATERIALIZED (SELECT now() AS at),
    ended AS (
      UPDATE reversals SET state = $3::text, response_code = $4,
        ended_at = CASE WHEN $3::text = 'DONE' THEN coalesce(ended_at, clock.at) ELSE ended_at END
      FROM clock WHERE partner_id = $1 AND transaction_id = $2 AND ${standing}
      RETURNING partner_id, transaction_id, requested_by),
    own AS (
      UPDATE transactions t SET reversal_state = lower($3::text),
        successor_state = CASE WHEN t.successor_command IS DISTINCT FROM 'REVERSAL' THEN t.successor_state
          WHEN $3::text = 'DONE' THEN 'done' ELSE 'in_doubt' END
      FROM ended e WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id),
    freed AS (
      UPDATE transactions o SET successor_id = NULL, successor_command = NULL, successor_state = NULL
      FROM ended e
      WHERE $3::text = 'DONE' AND o.partner_id = e.partner_id AND o.successor_id = e.transaction_id
        AND o.successor_state = 'in_doubt' AND o.id = (
          SELECT t.original_id FROM transactions t WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id))
    SELECT requested_by FROM ended`;

const end = prepared<EndedRow>(endWhere("state = 'PENDING' AND tries = $5"));
// This very end, made durable by an unknown COMMIT: a later one has another number of tries.
const endedBefore = prepared<EndedRow>(`
  SELECT requested_by FROM reversals
  WHERE partner_id = $1 AND transaction_id = $2 AND state = $3 AND response_code = $4 AND tries = $5`);

// The totals of a batch are with the acquirer, and are sent again until it answers: a person changes nothing meanwhile that
// counts in them. No Settlement begins, or counts, while the terminal is locked. A separate statement locks it: the one that
// waited would not see a Settlement that began meanwhile.
const lockTerminal = prepared(`
  SELECT FROM transactions t JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid
  WHERE t.partner_id = $1 AND t.id = $2 FOR UPDATE OF r`);
const noneAreSentOf = (what: string) => `NOT EXISTS (
      SELECT FROM transactions t JOIN settlements s ON s.partner_id = t.partner_id AND s.batch_id = t.batch_id
      WHERE t.partner_id = $1 AND t.id = $2 AND ${what} AND s.kind = 'SETTLEMENT' AND s.step <> 'waiting')`;

const resolve = prepared(endWhere(`state = 'PARKED' AND ${noneAreSentOf(isStanding)}`));

// A command that was reversed does not bind its batch, so that one in another currency may have entered since. What is in
// doubt like itself counts only once a person lets that stand. Nor does it bind its terminal, which may have another merchant
// or acquirer by now: that one would settle what it has not charged.
const hasMoved = "(i.acquirer <> own.acquirer OR i.mid <> own.facts #>> '{fields,mid}')";
const isOtherBatch = `
  SELECT ${hasMoved} AS moved FROM transactions own
  JOIN terminals i ON i.partner_id = own.partner_id AND i.tid = own.tid AND i.batch_id = own.batch_id
  WHERE own.partner_id = $1 AND own.id = $2 AND (${hasMoved} OR coalesce(${currencyThatCounts}) <> own.currency)`;
const otherBatch = prepared<{ moved: boolean | null }>(isOtherBatch);

// It succeeded after all, and with it what it did to its original. Its facts stay as its partner was told. A partner's
// REVERSAL that had failed holds it no longer.
const letStand = prepared(`
  WITH ended AS (
    UPDATE reversals SET state = 'STANDS', stood_at = now()
    WHERE partner_id = $1 AND transaction_id = $2 AND state = 'PARKED' AND ${noneAreSentOf(`NOT (${isStanding})`)}
      AND NOT EXISTS (${isOtherBatch})
    RETURNING partner_id, transaction_id),
  own AS (
    UPDATE transactions t SET state = 'SUCCESS', reversal_state = 'stands',
      successor_id = CASE WHEN t.successor_command = 'REVERSAL' THEN NULL ELSE t.successor_id END,
      successor_state = CASE WHEN t.successor_command = 'REVERSAL' THEN NULL ELSE t.successor_state END,
      successor_command = nullif(t.successor_command, 'REVERSAL')
    FROM ended e WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id
    RETURNING t.partner_id, t.tid, t.batch_id, t.currency),
  batch AS (
    UPDATE terminals r SET batch_currency = o.currency
    FROM own o WHERE r.partner_id = o.partner_id AND r.tid = o.tid AND r.batch_id = o.batch_id),
  original AS (
    UPDATE transactions o SET successor_state = 'done'
    FROM ended e
    WHERE o.partner_id = e.partner_id AND o.successor_id = e.transaction_id AND o.successor_state = 'in_doubt'
      AND o.id = (
        SELECT t.original_id FROM transactions t WHERE t.partner_id = e.partner_id AND t.id = e.transaction_id))
  SELECT FROM ended`);

// The fence of the tries before: it counts as one. What was never tried stays so: its first message is not a repeat, and
// a 94 that answers it does not say that it was reversed.
const requestedAgain = "CASE WHEN r.tries = 0 THEN 0 ELSE r.tries + 1 END";

// Requested by a partner: the transaction succeeded and the REVERSAL holds it, or its own Reversal is under way. Queued
// again for the same REVERSAL it is left as it is: a try may be under way.
const queue = prepared(`
  WITH original AS (
    UPDATE transactions SET reversal_state = 'pending'
    WHERE partner_id = $1 AND id = $2 AND state <> 'INIT' AND reversal_state IS DISTINCT FROM 'stands'
    RETURNING partner_id, id, tid, completed_at),
  queued AS (
    INSERT INTO reversals AS r (partner_id, transaction_id, tid, requested_by, left_by)
    SELECT partner_id, id, tid, $3, completed_at FROM original
    ON CONFLICT (partner_id, transaction_id) DO UPDATE SET state = 'PENDING', due_at = excluded.due_at,
      tries = ${requestedAgain}, requested_by = excluded.requested_by
    WHERE r.state <> 'PENDING' OR r.requested_by IS DISTINCT FROM excluded.requested_by)
  SELECT FROM original`);

// A Void or Complete that had been reversed may have taken effect after all: nothing else may begin on its original until
// that is known, unless something has meanwhile.
const heldAgain = `
  held AS (
    UPDATE transactions o SET successor_id = t.id, successor_command = t.command, successor_state = 'in_doubt'
    FROM again a JOIN transactions t ON t.partner_id = a.partner_id AND t.id = a.transaction_id
    WHERE t.command IN ('VOID', 'PREAUTH_COMPLETE') AND o.partner_id = t.partner_id AND o.id = t.original_id
      AND o.successor_id IS NULL)`;

// One that version 0.1.0 ended has no time of that yet.
const opensAgain = `state = 'PENDING', due_at = now(),
      ended_at = CASE WHEN r.state = 'DONE' THEN coalesce(r.ended_at, r.due_at) ELSE r.ended_at END`;

// The original was sent, or answered, after its Reversal was queued: it may be charged now. That of a success which the
// acquirer refuses to reverse, and which counts, says nothing new.
const repeat = prepared(`
  WITH again AS (
    UPDATE reversals r SET ${opensAgain}, tries = ${requestedAgain}, left_by = now()
    WHERE partner_id = $1 AND transaction_id = $2 AND state <> 'STANDS'
      AND NOT (state = 'PARKED' AND ended_at IS NULL
        AND EXISTS (SELECT FROM transactions t WHERE t.partner_id = $1 AND t.id = $2 AND t.state = 'SUCCESS'))
    RETURNING partner_id, transaction_id),${heldAgain}
  UPDATE transactions t SET reversal_state = 'pending'
  FROM again a WHERE t.partner_id = a.partner_id AND t.id = a.transaction_id`);

const retry = prepared(`
  WITH again AS (
    UPDATE reversals r SET ${opensAgain}, tries = r.tries + 1
    WHERE partner_id = $1 AND transaction_id = $2 AND state = $3 AND ${noneAreSentOf(isStanding)}
    RETURNING partner_id, transaction_id),
  own AS (
    UPDATE transactions t SET reversal_state = 'pending'
    FROM again a WHERE t.partner_id = a.partner_id AND t.id = a.transaction_id),${heldAgain}
  SELECT FROM again`);
// A Reversal without its acquirer would never end, and the terminal's settlements wait for it. Held until it is pending: a
// removal of the acquirer waits, and then finds it in use.
const acquirerOf = prepared<{ acquirer: string }>(
  "SELECT acquirer FROM transactions WHERE partner_id = $1 AND id = $2",
);
const holdAcquirer = prepared("SELECT FROM acquirers WHERE name = $1 FOR SHARE");

// Every unanswered command has a Reversal, once its instance or another one has ended it. Days after that is done, an
// answer can no longer be matched. Measured: from 100,000 Reversals to their transactions it took 550 ms.
const undecided = prepared<Undecided>(`
  SELECT t.partner_id AS "partnerId", t.id AS "transactionId" FROM transactions t
  CROSS JOIN LATERAL (
    SELECT r.tid, r.created_at, r.state FROM reversals r
    WHERE r.partner_id = t.partner_id AND r.transaction_id = t.id LIMIT 1) AS r
  WHERE t.reversal_state IS NOT NULL AND t.facts #>> '{fields,traceNo}' = $2 AND ($1 = '' OR r.tid = $1)
    AND (r.created_at > now() - ${answerable} OR r.state ${openReversal})
  UNION ALL
  SELECT t.partner_id, t.id FROM transactions t
  WHERE t.state = 'INIT' AND t.origin = 'command' AND ($1 = '' OR t.tid = $1)
    AND t.facts #>> '{fields,traceNo}' = $2`);

interface EndedRow {
  readonly requested_by: TransactionId | null;
}

/**
 * Running Reversals, in PostgreSQL. Its statements lock a Reversal before its transaction and its original; others may
 * need them in the opposite order.
 *
 * @param options whether the event of a refused one is sent as an alert
 */
export function postgresReversals(
  homes: Homes,
  { alerting = false }: { readonly alerting?: boolean } = {},
): ReversalStore & UnmatchedAnswerStore {
  /** False if it changed nothing. @param asks whether it needs the acquirer */
  function decide(
    statement: Statement<object>,
    values: [PartnerId, TransactionId, ...string[]],
    asks = false,
  ): Promise<boolean | "no_acquirer"> {
    const [partnerId, transactionId] = values;
    const change = async (client: PoolClient) => {
      await lockTerminal.run(client, [partnerId, transactionId]);
      const acquirer = asks ? (await acquirerOf.first(client, [partnerId, transactionId]))?.acquirer : undefined;
      if (acquirer && (await holdAcquirer.run(client, [acquirer])) === 0) return "no_acquirer";
      return (await statement.run(client, values)) === 1;
    };
    return despiteConflicts(() => inTransaction(homes.of(partnerId).engine, change));
  }

  return {
    claimDue: (rowsMax, heldForMs) => claim(homes, rowsMax, heldForMs),

    async postpone({ partnerId, transactionId, tries }, delayMs, responseCode) {
      await postpone.run(homes.of(partnerId).engine, [partnerId, transactionId, delayMs, tries, responseCode]);
    },

    async noteUnknown(partnerId, transactionId) {
      await noteUnknown.run(homes.of(partnerId).engine, [partnerId, transactionId]);
    },

    async end({ partnerId, transactionId, tries }, { state, responseCode, event }) {
      const values = [partnerId, transactionId, state, responseCode, tries];
      const { engine } = homes.of(partnerId);
      const ended = await despiteConflicts(() => {
        if (event === undefined) return end.first(engine, values);
        return inTransaction(engine, async (client) => {
          const row = await end.first(client, values);
          if (row !== undefined) await insertEvents(client, [event], alerting);
          return row;
        });
      });
      const row = ended ?? (await endedBefore.first(engine, values));
      return row && { requestedBy: row.requested_by };
    },

    async queue(partnerId, transactionId, requestedBy) {
      const values = [partnerId, transactionId, requestedBy];
      return (await despiteConflicts(() => queue.run(homes.of(partnerId).engine, values))) === 1;
    },

    retry: (partnerId, transactionId, from) => decide(retry, [partnerId, transactionId, from], true),

    async resolve(partnerId, transactionId) {
      return (await decide(resolve, [partnerId, transactionId, "DONE", approvedCode])) === true;
    },

    async letStand(partnerId, transactionId) {
      if (await decide(letStand, [partnerId, transactionId])) return true;
      const { engine } = homes.of(partnerId);
      const other = await otherBatch.first(engine, [partnerId, transactionId]);
      return other !== undefined && (other.moved ? "moved" : "other_currency");
    },

    async repeat(partnerId, transactionId) {
      await despiteConflicts(() => repeat.run(homes.of(partnerId).engine, [partnerId, transactionId]));
    },

    async undecided(tid, traceNo) {
      const values = [tid, traceNo];
      return await homes.gather(({ engine }) => undecided.rows(engine, values));
    },
  };
}
