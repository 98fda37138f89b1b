import type { Command } from "@paybell/contract";

// Conditions that several statements share. `t` is the transaction.

/** What follows IN: the names are ours, and hold no quote. */
export function commandsInSql(commands: readonly Command[]): string {
  return `(${commands.map((command) => `'${command}'`).join(", ")})`;
}

/** The commands that the settler runs. */
export const settlementCommands = commandsInSql(["SETTLEMENT", "BATCH_UPLOAD"]);

/** The command that a Void `t` voids; null of others. A switch may say that it voided a PreAuth which it has not reported. */
export const voidedCommand = `
  CASE WHEN t.command <> 'VOID' THEN NULL
    WHEN t.facts ->> 'voidsPreAuth' = 'true' THEN 'PREAUTH'
    ELSE (SELECT o.command FROM transactions o WHERE o.partner_id = t.partner_id AND o.id = t.original_id)
  END`;

const moneyTold = (name: string) => `coalesce(t.facts #>> '{fields,${name}}', '')`;

/** The amount or currency of `t`. A switch may report a Void without it, or of 0: it takes back what it voids. */
export const moneyOf = (name: "amount" | "currency") => `CASE
    WHEN t.command <> 'VOID' OR ${moneyTold(name)} ~ '[A-Z1-9]' THEN ${moneyTold(name)}
    ELSE coalesce((SELECT o.facts #>> '{fields,${name}}' FROM transactions o
      WHERE o.partner_id = t.partner_id AND o.id = t.original_id), ${moneyTold(name)}) END`;

/**
 * `t` succeeded and was not reversed: it counts. One that was reversed once counts nowhere, whatever its Reversal does again,
 * until a person lets it stand.
 */
export const isStanding = `t.state = 'SUCCESS' AND CASE
    WHEN t.reversal_state IS NULL OR t.reversal_state = 'stands' THEN true WHEN t.reversal_state = 'done' THEN false
    ELSE (SELECT e.ended_at FROM reversals e WHERE e.partner_id = t.partner_id AND e.transaction_id = t.id) IS NULL END`;

/** What the partner of `t` was told: of one that stands it may have been ERROR. */
export const statusTold = `CASE WHEN t.reversal_state = 'stands' THEN t.facts #>> '{fields,status}' ELSE t.state END`;

/** A Reversal whose end is open: in flight, or for the operator to decide. */
export const openReversal = "IN ('PENDING', 'PARKED')";

/** Its Void succeeded. Until that is known, as with one in doubt, the transaction `t` stands. */
export const isVoided =
  "(t.successor_command IS NOT DISTINCT FROM 'VOID' AND t.successor_state IS NOT DISTINCT FROM 'done')";

/**
 * `r` is the Reversal of `t` that a switch reported before `t` itself. It names `t` by its number, to which the key of `t`
 * may add the command. If a Sale and its Void share a number, the Reversal is the Sale's.
 */
export const reversesEarly = (r: string, t: string) => `(${t}.origin = 'switch' AND ${r}.partner_id = ${t}.partner_id
    AND ${r}.command = 'REVERSAL' AND ${r}.origin = 'switch' AND ${r}.original_id IS NULL
    AND ${r}.original_external_id IN (${t}.external_id,
      CASE WHEN ${t}.command <> 'VOID' THEN regexp_replace(${t}.external_id, ' #' || ${t}.command || '$', '') END))`;

export const isReversedEarly = (t: string) => `(${t}.origin = 'switch' AND EXISTS (
    SELECT FROM transactions r WHERE ${reversesEarly("r", t)} AND r.state = 'SUCCESS'))`;

/** The state of the Reversal of `t`: of our own, or done if a switch reported one. */
export const reversalOf = (t: string) => `coalesce(${t}.reversal_state, CASE WHEN ${isReversedEarly(t)}
    OR (${t}.origin = 'switch' AND EXISTS (
      SELECT FROM transactions r WHERE r.partner_id = ${t}.partner_id AND r.original_id = ${t}.id AND r.state = 'SUCCESS'
        AND r.command = 'REVERSAL')) THEN 'done' END)`;

/**
 * `t` was undone before its Void or reported Reversal `e`, by one that was not undone itself: `e` moves nothing. Paybell
 * refuses such a command, but a switch may report anything. What a person lets stand after a REVERSAL was not undone by it.
 */
export const isUndoneBefore = (t: string, e: string) => `(${isReversedEarly(t)} OR EXISTS (
    SELECT FROM transactions u WHERE u.partner_id = ${t}.partner_id AND u.original_id = ${t}.id AND u.state = 'SUCCESS'
      AND u.command IN ('VOID', CASE WHEN ${t}.reversal_state = 'stands' THEN NULL ELSE 'REVERSAL' END)
      AND (u.completed_at, u.id) < (${e}.completed_at, ${e}.id)
      AND NOT EXISTS (
        SELECT FROM transactions r WHERE r.partner_id = u.partner_id AND r.original_id = u.id AND r.state = 'SUCCESS'
          AND r.command = 'REVERSAL')))`;

/** A switch reported its Void, and no Reversal of that. */
export const isVoidedByReport = `(t.origin = 'switch' AND EXISTS (
    SELECT FROM transactions v WHERE v.partner_id = t.partner_id AND v.original_id = t.id AND v.command = 'VOID'
      AND v.state = 'SUCCESS' AND ${reversalOf("v")} IS NULL))`;

/** `t` is a Void that moves nothing: its original failed, or was undone before. */
export const voidsNothing = `(t.command = 'VOID' AND EXISTS (
    SELECT FROM transactions o WHERE o.partner_id = t.partner_id AND o.id = t.original_id
      AND (o.state = 'ERROR' OR ${isUndoneBefore("o", "t")})))`;

/** The state of a batch of the terminal `r`: the terminal has the open one's id and number. */
export const batchState = (isLatest: string) =>
  `CASE WHEN NOT coalesce(${isLatest}, false) THEN 'closed' WHEN r.batch_closing THEN 'closing' ELSE 'open' END`;

/**
 * An id of `t` that does not begin with its time: a switch assigned it, perhaps long before it reported `t`. The index
 * transactions_other_id has the same condition.
 */
export const isUntimed = `(get_byte(uuid_send(t.id), 6) >> 4 <> 7 OR t.origin = 'switch'
    AND t.created_at - to_timestamp(('x' || left(replace(t.id::text, '-', ''), 12))::bit(48)::bigint / 1000.0)
      NOT BETWEEN interval '-1 hour' AND interval '1 hour')`;
/** `t` completed later than its id says. The index transactions_slow has the same condition. */
export const isSlow = "t.completed_at - t.created_at > interval '10 minutes'";

/** For so long an answer that comes late can still be matched with its command, and the command's card is kept. */
export const answerable = "interval '2 days'";
