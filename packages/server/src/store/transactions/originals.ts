import type { Command } from "@paybell/contract";
import type { PoolClient } from "pg";
import type { OriginalState } from "../../commands/original.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";
import { Columns } from "../database/columns.ts";

// Locked in key order, after the terminals: every writer acquires its locks in this order.
const lock = {
  name: "lock_originals",
  text: `
    SELECT t.partner_id, t.id, t.origin, t.command, t.state, t.tid, t.batch_id, t.successor_command, t.successor_state,
      t.reversal_state, t.amount_minor::text, t.currency, t.created_at, r.batch_id AS open_batch_id, r.batch_closing,
      s.reversal_state AS successor_reversal
    FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS i (partner_id, id, nth)
    JOIN transactions t ON t.partner_id = i.partner_id AND t.id = i.id
    LEFT JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid
    LEFT JOIN transactions s ON s.partner_id = t.partner_id AND s.id = t.successor_id
    ORDER BY i.nth
    FOR UPDATE OF t`,
};

// A separate statement after the originals are locked: the locking statement sees other tables as they were before it
// waited, and would miss a Refund of another instance.
const sumRefunds = {
  name: "sum_refunds",
  text: `
    SELECT i.id, coalesce((
      SELECT sum(t.amount_minor) FROM transactions t
      WHERE t.partner_id = i.partner_id AND t.original_id = i.id AND t.command = 'REFUND' AND CASE t.state
        WHEN 'INIT' THEN true
        WHEN 'SUCCESS' THEN t.reversal_state IS DISTINCT FROM 'done'
        ELSE t.reversal_state IN ('pending', 'parked') END), 0)::text AS refunded
    FROM unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)`,
};

const holders = new Columns<Init>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ originalId }) => originalId],
  successor_id: ["uuid", ({ id }) => id],
  command: ["text", ({ command }) => command],
});
const hold = {
  name: "hold_originals",
  text: `
    UPDATE transactions t SET successor_id = i.successor_id, successor_command = i.command,
      successor_state = 'in_flight'
    FROM ${holders.rows}
    WHERE t.partner_id = i.partner_id AND t.id = i.id`,
};

interface OriginalRow {
  readonly partner_id: PartnerId;
  readonly id: TransactionId;
  readonly origin: "command" | "switch";
  readonly command: Command;
  readonly state: "INIT" | "SUCCESS" | "ERROR";
  readonly batch_id: string | null;
  readonly successor_command: "VOID" | "PREAUTH_COMPLETE" | "REVERSAL" | null;
  readonly successor_state: "in_flight" | "in_doubt" | "done" | null;
  readonly reversal_state: "pending" | "done" | "parked" | null;
  readonly amount_minor: string | null;
  readonly currency: string | null;
  readonly created_at: Date;
  readonly open_batch_id: string | null;
  readonly batch_closing: boolean | null;
  readonly successor_reversal: OriginalRow["reversal_state"];
}

/** Locks the originals of these commands, and returns their states. */
export async function lockOriginals(client: PoolClient, inits: readonly Init[]): Promise<Map<string, OriginalState>> {
  const wanted = inits
    .flatMap(({ partnerId, originalId }) => (originalId === null ? [] : [{ partnerId, originalId }]))
    .sort((a, b) => (`${a.partnerId} ${a.originalId}` < `${b.partnerId} ${b.originalId}` ? -1 : 1));
  if (wanted.length === 0) return new Map();
  const { rows } = await client.query<OriginalRow>({
    ...lock,
    values: [wanted.map(({ partnerId }) => partnerId), wanted.map(({ originalId }) => originalId)],
  });
  const refunded = await refundedOf(client, inits);
  return new Map(rows.map((row) => [`${row.partner_id} ${row.id}`, toState(row, refunded.get(row.id) ?? 0n)]));
}

async function refundedOf(client: PoolClient, inits: readonly Init[]): Promise<ReadonlyMap<TransactionId, bigint>> {
  const refunds = inits.filter(({ command }) => command === "REFUND");
  if (refunds.length === 0) return new Map();
  const { rows } = await client.query<{ id: TransactionId; refunded: string }>({
    ...sumRefunds,
    values: [refunds.map(({ partnerId }) => partnerId), refunds.map(({ originalId }) => originalId)],
  });
  return new Map(rows.map(({ id, refunded }) => [id, BigInt(refunded)]));
}

/** Each command now holds its original, so that no other may begin on it. Several Refunds may. */
export async function reserveOriginals(client: PoolClient, inits: readonly Init[]): Promise<void> {
  const holding = inits.filter((init) => init.originalId !== null && init.command !== "REFUND");
  if (holding.length > 0) await client.query({ ...hold, values: holders.values(holding) });
}

function toState(row: OriginalRow, refundedMinor: bigint): OriginalState {
  const { successor_command: command, successor_state: state, successor_reversal: reversal } = row;
  return {
    id: row.id,
    command: row.command,
    state: row.state,
    origin: row.origin,
    successor: command === null || state === null ? null : { command, state, reversal },
    reversal: row.reversal_state,
    batch: batchOf(row),
    amountMinor: BigInt(row.amount_minor ?? 0),
    refundedMinor,
    currency: row.currency ?? "",
    createdAtMs: row.created_at.getTime(),
  };
}

function batchOf(row: OriginalRow): OriginalState["batch"] {
  if (row.batch_id === null) return "none";
  if (row.batch_id !== row.open_batch_id) return "closed";
  return row.batch_closing === true ? "closing" : "open";
}
