import type { PoolClient } from "pg";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { BatchEnd, Completion } from "../../ledger/store.ts";
import { Columns } from "../database/columns.ts";
import { prepared } from "../database/statement.ts";
import { closeBatchWith, closedBatch, totalsInJson } from "../settlements/settlements.ts";
import { answerable } from "./conditions.ts";

interface Held {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly successorId: TransactionId;
  readonly becomes: string;
}
const held = new Columns<Held>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ id }) => id],
  successor_id: ["uuid", ({ successorId }) => successorId],
  becomes: ["text", ({ becomes }) => becomes],
});
// The original that a command held: completed by it, free again, or held while its own Reversal is running.
const settleOriginals = prepared(`
  UPDATE transactions t SET
    successor_id = CASE WHEN i.becomes = 'free' THEN NULL ELSE t.successor_id END,
    successor_command = CASE WHEN i.becomes = 'free' THEN NULL ELSE t.successor_command END,
    successor_state = CASE WHEN i.becomes = 'free' THEN NULL ELSE i.becomes END
  FROM ${held.rows}
  WHERE t.partner_id = i.partner_id AND t.id = i.id AND t.successor_id = i.successor_id`);

type Reversed = Pick<Completion, "partnerId" | "id"> & NonNullable<Completion["reversal"]>;
const reversed = new Columns<Reversed>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  transaction_id: ["uuid", ({ id }) => id],
  tid: ["text", ({ tid }) => tid],
  requested_by: ["uuid", ({ requestedBy }) => requestedBy],
});
// One Reversal per transaction: a second request repeats it.
const queueReversals = prepared(`
  WITH marked AS (
    UPDATE transactions t SET reversal_state = 'pending'
    FROM ${reversed.some("partner_id, transaction_id")}
    WHERE t.partner_id = i.partner_id AND t.id = i.transaction_id)
  INSERT INTO reversals AS r (partner_id, transaction_id, tid, requested_by)
  SELECT partner_id, transaction_id, tid, requested_by
  FROM ${reversed.rows}
  ON CONFLICT (partner_id, transaction_id) DO UPDATE SET state = 'PENDING', due_at = excluded.due_at,
    left_by = excluded.left_by, tries = r.tries + 1, requested_by = coalesce(excluded.requested_by, r.requested_by)`);

const partial = new Columns<Completion>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ id }) => id],
  amount_minor: ["bigint", ({ amountMinor }) => amountMinor],
});
// The part of an amount that was approved.
const changeAmounts = prepared(`
  UPDATE transactions t SET amount_minor = i.amount_minor
  FROM ${partial.rows}
  WHERE t.partner_id = i.partner_id AND t.id = i.id`);

// Each state that a batch can get has its own statement. Citus fails to run `WITH (UPDATE … AND $4) INSERT …` if $4 is
// false: "cannot execute a distributed query from a query on a shard".
const closeBatch = closeBatchWith("batch_closing = false");

// The batch is open, or a late answer to an earlier Settlement has closed it meanwhile. What was sent and may still be
// answered is kept, as long as an answer of cards is. Citus allows these functions in a SELECT, not in the SET.
const reopenBatch = prepared(`
  WITH kept AS (
    SELECT CASE WHEN s.step = 'sending' THEN
      jsonb_path_query_array(coalesce(t.unanswered_settlements, '[]'), '$[*] ? (@.untilMs > $now)',
        jsonb_build_object('now', extract(epoch FROM now()) * 1000))
      || jsonb_build_object('id', s.id, 'batchId', s.batch_id, 'isUploaded', s.is_uploaded, 'traceNo', s.trace_no,
        'atMs', extract(epoch FROM s.numbered_at) * 1000, 'totals', $4::jsonb,
        'untilMs', extract(epoch FROM now() + ${answerable}) * 1000)
      ELSE t.unanswered_settlements END AS unanswered
    FROM terminals t JOIN settlements s ON s.partner_id = t.partner_id
    WHERE t.partner_id = $1 AND t.tid = $2 AND s.id = $3 FOR UPDATE OF t)
  UPDATE terminals t SET batch_closing = false, unanswered_settlements = k.unanswered
  FROM kept k WHERE t.partner_id = $1 AND t.tid = $2`);

const reportBatch = prepared(`
  WITH terminal AS (
    UPDATE terminals SET late_settlement = NULL, batch_closing = false
    WHERE partner_id = $1 AND tid = $2 AND late_settlement ->> 'batchId' = $3::uuid::text
    RETURNING partner_id)
  UPDATE batches b SET settlement_id = $4 FROM terminal t WHERE b.partner_id = t.partner_id AND b.id = $3`);

const endSettlement = prepared("DELETE FROM settlements WHERE partner_id = $1 AND id = $2");

/** Whether only its own row changes, and its notification is added. */
export function hasNoEffects({ original, reversal, batch, amountMinor, notification }: Completion): boolean {
  const effects = [original, reversal, batch, amountMinor, notification?.settlesBatch];
  return effects.every((effect) => effect === null || effect === undefined);
}

/** Writes the effects of completed commands beyond their own row and their notification. */
export function writeEffects(client: PoolClient, completions: readonly Completion[]): Promise<unknown>[] {
  const effects: Promise<unknown>[] = [];
  const originals = completions.flatMap(({ partnerId, id, original }) =>
    original === null ? [] : [{ partnerId, successorId: id, ...original }],
  );
  if (originals.length > 0) effects.push(settleOriginals.run(client, held.values(originals)));
  const reversals = completions.flatMap(({ partnerId, id, reversal }) =>
    reversal === null ? [] : [{ partnerId, id, ...reversal }],
  );
  if (reversals.length > 0) effects.push(queueReversals.run(client, reversed.values(reversals)));
  const partly = completions.filter(({ amountMinor }) => amountMinor !== undefined);
  if (partly.length > 0) effects.push(changeAmounts.run(client, partial.values(partly)));
  for (const completion of completions) {
    if (completion.batch !== null) effects.push(...endBatch(client, completion, completion.batch));
  }
  return effects;
}

function endBatch(client: PoolClient, { partnerId, id, facts }: Completion, batch: BatchEnd): Promise<unknown>[] {
  const { tid, batchId, becomes, totals } = batch;
  const ended: Promise<unknown>[] = [];
  if (becomes === "open") {
    ended.push(reopenBatch.run(client, [partnerId, tid, id, totalsInJson(totals)]));
  }
  if (becomes === "closed") {
    const closing = { partnerId, tid, batchId, batchNo: facts.fields["batchNo"] ?? "", settlementId: id };
    ended.push(closeBatch.run(client, [...closedBatch(closing, totals)]));
  }
  // Also if this one was answered: a late answer to an earlier Settlement may have come while it ran.
  if (becomes === "closed" || becomes === "reported") {
    ended.push(reportBatch.run(client, [partnerId, tid, batchId, id]));
  }
  return [...ended, endSettlement.run(client, [partnerId, id])];
}
