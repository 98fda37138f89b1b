import type { PoolClient } from "pg";
import { newId } from "../../ids.ts";
import type { BatchEnd, Completion } from "../../ledger/store.ts";
import { totalsInJson } from "../settlements/settlements.ts";

// The original that a command held: completed by it, free again, or held while its own Reversal is running.
const settleOriginals = {
  name: "settle_originals",
  text: `
    UPDATE transactions t SET
      successor_id = CASE WHEN i.becomes = 'free' THEN NULL ELSE t.successor_id END,
      successor_command = CASE WHEN i.becomes = 'free' THEN NULL ELSE t.successor_command END,
      successor_state = CASE WHEN i.becomes = 'free' THEN NULL ELSE i.becomes END
    FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[]) AS i (partner_id, id, successor_id, becomes)
    WHERE t.partner_id = i.partner_id AND t.id = i.id AND t.successor_id = i.successor_id`,
};

// One Reversal per transaction: a second request repeats it.
const queueReversals = {
  name: "queue_reversals",
  text: `
    WITH marked AS (
      UPDATE transactions t SET reversal_state = 'pending'
      FROM unnest($1::uuid[], $2::uuid[]) AS i (partner_id, transaction_id)
      WHERE t.partner_id = i.partner_id AND t.id = i.transaction_id)
    INSERT INTO reversals AS r (partner_id, transaction_id, tid, requested_by)
    SELECT partner_id, transaction_id, tid, requested_by
    FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[]) AS i (partner_id, transaction_id, tid, requested_by)
    ON CONFLICT (partner_id, transaction_id) DO UPDATE SET state = 'PENDING', due_at = excluded.due_at,
      left_by = excluded.left_by, tries = r.tries + 1, requested_by = coalesce(excluded.requested_by, r.requested_by)`,
};

// The part of an amount that was approved.
const changeAmounts = {
  name: "change_amounts",
  text: `
    UPDATE transactions t SET amount_minor = i.amount_minor
    FROM unnest($1::uuid[], $2::uuid[], $3::bigint[]) AS i (partner_id, id, amount_minor)
    WHERE t.partner_id = i.partner_id AND t.id = i.id`,
};

// Each state that a batch can get has its own statement. Citus fails to run `WITH (UPDATE … AND $4) INSERT …` if $4 is
// false: "cannot execute a distributed query from a query on a shard".
const closeBatch = {
  name: "close_batch",
  text: `
    WITH terminal AS (
      UPDATE terminals SET batch_closing = false, batch_id = $13, batch_no = batch_no % 999999 + 1,
        batch_currency = NULL
      WHERE partner_id = $1 AND tid = $2 AND batch_id = $3
      RETURNING partner_id, tid, mid)
    INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity, sale_total_minor,
      void_quantity, void_total_minor, refund_quantity, refund_total_minor)
    SELECT partner_id, $3, tid, mid, $5, $6, $4, $7, $8, $9, $10, $11, $12 FROM terminal
    ON CONFLICT DO NOTHING`,
};

// The batch is open, or a late answer to an earlier Settlement has closed it meanwhile. What was sent and may still be
// answered is kept, as long as an answer of cards is.
const reopenBatch = {
  name: "reopen_batch",
  text: `
    UPDATE terminals t SET batch_closing = false,
      unanswered_settlements = CASE WHEN s.step = 'sending' THEN
        jsonb_path_query_array(coalesce(t.unanswered_settlements, '[]'), '$[*] ? (@.untilMs > $now)',
          jsonb_build_object('now', extract(epoch FROM now()) * 1000))
        || jsonb_build_object('id', s.id, 'batchId', s.batch_id, 'isUploaded', s.is_uploaded, 'traceNo', s.trace_no,
          'atMs', extract(epoch FROM s.numbered_at) * 1000, 'totals', $4::jsonb,
          'untilMs', extract(epoch FROM now() + interval '2 days') * 1000)
        ELSE t.unanswered_settlements END
    FROM settlements s
    WHERE t.partner_id = $1 AND t.tid = $2 AND s.partner_id = $1 AND s.id = $3`,
};

const reportBatch = {
  name: "report_batch",
  text: `
    WITH terminal AS (
      UPDATE terminals SET late_settlement = NULL, batch_closing = false
      WHERE partner_id = $1 AND tid = $2 AND late_settlement ->> 'batchId' = $3::uuid::text
      RETURNING partner_id)
    UPDATE batches b SET settlement_id = $4 FROM terminal t WHERE b.partner_id = t.partner_id AND b.id = $3`,
};

const endSettlement = {
  name: "end_settlement",
  text: "DELETE FROM settlements WHERE partner_id = $1 AND id = $2",
};

/** Writes the effects of completed commands beyond their own row and their notification. */
export function writeEffects(client: PoolClient, completions: readonly Completion[]): Promise<unknown>[] {
  const effects: Promise<unknown>[] = [];
  const held = completions.flatMap(({ partnerId, id, original }) =>
    original === null ? [] : [{ partnerId, successorId: id, ...original }],
  );
  if (held.length > 0) {
    effects.push(
      client.query({
        ...settleOriginals,
        values: [
          held.map(({ partnerId }) => partnerId),
          held.map(({ id }) => id),
          held.map(({ successorId }) => successorId),
          held.map(({ becomes }) => becomes),
        ],
      }),
    );
  }
  const reversed = completions.flatMap(({ partnerId, id, reversal }) =>
    reversal === null ? [] : [{ partnerId, id, ...reversal }],
  );
  if (reversed.length > 0) {
    effects.push(
      client.query({
        ...queueReversals,
        values: [
          reversed.map(({ partnerId }) => partnerId),
          reversed.map(({ id }) => id),
          reversed.map(({ tid }) => tid),
          reversed.map(({ requestedBy }) => requestedBy),
        ],
      }),
    );
  }
  const partial = completions.filter(({ amountMinor }) => amountMinor !== undefined);
  if (partial.length > 0) {
    effects.push(
      client.query({
        ...changeAmounts,
        values: [
          partial.map(({ partnerId }) => partnerId),
          partial.map(({ id }) => id),
          partial.map(({ amountMinor }) => amountMinor),
        ],
      }),
    );
  }
  for (const completion of completions) {
    if (completion.batch !== null) effects.push(...endBatch(client, completion, completion.batch));
  }
  return effects;
}

function endBatch(client: PoolClient, { partnerId, id, facts }: Completion, batch: BatchEnd): Promise<unknown>[] {
  const { tid, batchId, becomes, totals } = batch;
  const ended: Promise<unknown>[] = [];
  if (becomes === "open") {
    ended.push(client.query({ ...reopenBatch, values: [partnerId, tid, id, totalsInJson(totals)] }));
  }
  if (becomes === "closed") {
    const values = [
      partnerId,
      tid,
      batchId,
      id,
      facts.fields["batchNo"] ?? "",
      totals.currency,
      totals.saleQuantity,
      totals.saleTotalMinor,
      totals.voidQuantity,
      totals.voidTotalMinor,
      totals.refundQuantity,
      totals.refundTotalMinor,
      // The id of the batch that is open from now on.
      newId(),
    ];
    ended.push(client.query({ ...closeBatch, values }));
  }
  // Also if this one was answered: a late answer to an earlier Settlement may have come while it ran.
  if (becomes === "closed" || becomes === "reported") {
    ended.push(client.query({ ...reportBatch, values: [partnerId, tid, batchId, id] }));
  }
  return [...ended, client.query({ ...endSettlement, values: [partnerId, id] })];
}
