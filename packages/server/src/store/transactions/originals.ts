import type { PoolClient } from "pg";
import type { OriginalState } from "../../commands/states.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";
import { Columns } from "../database/columns.ts";
import { prepared } from "../database/statement.ts";
import { batchState, isStanding } from "./conditions.ts";

// Locked in key order, after the terminals: every writer acquires its locks in this order.
const lock = prepared<OriginalRow>(`
  SELECT t.partner_id AS "partnerId", t.id, t.origin, t.command, t.state, t.reversal_state AS reversal,
    CASE WHEN t.batch_id IS NULL THEN 'none' ELSE ${batchState("r.batch_id = t.batch_id")} END AS batch,
    CASE WHEN t.successor_command IS NOT NULL AND t.successor_state IS NOT NULL THEN json_build_object(
      'command', t.successor_command, 'state', t.successor_state, 'reversal', s.reversal_state) END AS successor,
    coalesce(t.amount_minor, 0)::text AS "amountText", coalesce(t.currency, '') AS currency,
    t.created_at AS "createdAt"
  FROM unnest($1::uuid[], $2::uuid[]) WITH ORDINALITY AS i (partner_id, id, nth)
  JOIN transactions t ON t.partner_id = i.partner_id AND t.id = i.id
  LEFT JOIN terminals r ON r.partner_id = t.partner_id AND r.tid = t.tid
  LEFT JOIN transactions s ON s.partner_id = t.partner_id AND s.id = t.successor_id
  ORDER BY i.nth
  FOR UPDATE OF t`);

// A separate statement after the originals are locked: the locking statement sees other tables as they were before it
// waited, and would miss a Refund of another instance.
const sumRefunds = prepared<{ partner_id: PartnerId; id: TransactionId; refunded: string }>(`
    SELECT i.partner_id, i.id, coalesce((
      SELECT sum(t.amount_minor) FROM transactions t
      WHERE t.partner_id = i.partner_id AND t.original_id = i.id AND t.command = 'REFUND'
        AND (t.state = 'INIT' OR ${isStanding} OR t.reversal_state IN ('pending', 'parked'))), 0)::text AS refunded
    FROM unnest($1::uuid[], $2::uuid[]) AS i (partner_id, id)`);

const holders = new Columns<Init>({
  partner_id: ["uuid", ({ partnerId }) => partnerId],
  id: ["uuid", ({ originalId }) => originalId],
  successor_id: ["uuid", ({ id }) => id],
  command: ["text", ({ command }) => command],
});
const hold = prepared(`
  UPDATE transactions t SET successor_id = i.successor_id, successor_command = i.command,
    successor_state = 'in_flight'
  FROM ${holders.rows}
  WHERE t.partner_id = i.partner_id AND t.id = i.id`);

interface OriginalRow extends Omit<OriginalState, "amountMinor" | "refundedMinor" | "createdAtMs"> {
  readonly partnerId: PartnerId;
  readonly id: TransactionId;
  readonly amountText: string;
  readonly createdAt: Date;
}

export async function lockOriginals(client: PoolClient, inits: readonly Init[]): Promise<Map<string, OriginalState>> {
  const wanted = inits
    .flatMap(({ partnerId, originalId }) => (originalId === null ? [] : [{ partnerId, originalId }]))
    .sort((a, b) => (`${a.partnerId} ${a.originalId}` < `${b.partnerId} ${b.originalId}` ? -1 : 1));
  if (wanted.length === 0) return new Map();
  const rows = await lock.rows(client, [
    wanted.map(({ partnerId }) => partnerId),
    wanted.map(({ originalId }) => originalId),
  ]);
  const refunded = await refundedOf(client, inits);
  return new Map(
    rows.map(({ partnerId, amountText, createdAt, ...same }) => {
      const key = `${partnerId} ${same.id}`;
      const refundedMinor = refunded.get(key) ?? 0n;
      return [key, { ...same, amountMinor: BigInt(amountText), refundedMinor, createdAtMs: createdAt.getTime() }];
    }),
  );
}

async function refundedOf(client: PoolClient, inits: readonly Init[]): Promise<ReadonlyMap<string, bigint>> {
  const refunds = inits.filter(({ command }) => command === "REFUND");
  if (refunds.length === 0) return new Map();
  const rows = await sumRefunds.rows(client, [
    refunds.map(({ partnerId }) => partnerId),
    refunds.map(({ originalId }) => originalId),
  ]);
  return new Map(rows.map((row) => [`${row.partner_id} ${row.id}`, BigInt(row.refunded)]));
}

/** Each command now holds its original, so that no other may begin on it. Several Refunds may. */
export async function reserveOriginals(client: PoolClient, inits: readonly Init[]): Promise<void> {
  const holding = inits.filter((init) => init.originalId !== null && init.command !== "REFUND");
  if (holding.length > 0) await hold.run(client, holders.values(holding));
}
