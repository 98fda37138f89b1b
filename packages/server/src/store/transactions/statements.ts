import { notifiedCommands } from "@paybell/contract";
import { highestId, lowestId, nilId, type PartnerId } from "../../ids.ts";
import type { ClosedBatch, OwnSearch, SettlementRow, StatementRow, StatementStore } from "../../ledger/statements.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import {
  commandsInSql,
  isReversedEarly,
  isSlow,
  isUndoneBefore,
  isUntimed,
  moneyOf,
  statusTold,
  voidedCommand,
  voidsNothing,
} from "./conditions.ts";

const pageRows = 500;
/** Clocks of instances differ by less: an id has the time of one, and created_at that of the database. */
const clockSkewMs = 3_600_000;
const soonMs = 600_000;

const commands = commandsInSql(notifiedCommands);
const columns = `
  t.id, t.command, ${statusTold} AS state, t.original_id AS "originalId", t.notification_id AS "notificationId", t.req_id AS "reqId",
  t.facts -> 'fields' AS fields, ${moneyOf("amount")} AS amount, ${moneyOf("currency")} AS currency,
  ${voidedCommand} AS "originalCommand",
  ${voidsNothing} AS "voidsNothing"`;
const completed = `
  SELECT 'transaction' AS kind, t.completed_at AS at, ${columns}, ${isReversedEarly("t")} AS "isReversed",
    %key AS key
  FROM transactions t
  WHERE t.partner_id = $1 AND t.completed_at >= $2 AND t.completed_at < $3 AND t.command IN ${commands}`;
const completedAnd = (conditions: string, key: string) => `${completed.replace("%key", key)} AND ${conditions}`;

interface Source {
  /** $1 is the partner, $2 and $3 the span, $4 and $5 the place after which the page begins. */
  readonly text: string;
  /** The place before the first row. */
  readonly first: (fromMs: number, beforeMs: number) => readonly string[];
  readonly next: (row: Row, beforeMs: number) => readonly string[];
}

const highOf = (beforeMs: number) => lowestId(beforeMs + clockSkewMs);
const byTime: Pick<Source, "first" | "next"> = {
  first: (fromMs) => [new Date(fromMs - soonMs).toISOString(), nilId],
  next: ({ key, id }) => [key, id],
};

// Each is a range of one index. Keys are texts, because a Date has no microseconds.
const sources: readonly Source[] = [
  {
    text: `${completedAnd(`t.id > $4::uuid AND t.id < $5::uuid AND NOT (${isUntimed}) AND NOT (${isSlow})`, "''")}
      ORDER BY t.id LIMIT ${pageRows}`,
    first: (fromMs, beforeMs) => [lowestId(fromMs - soonMs - clockSkewMs), highOf(beforeMs)],
    next: ({ id }, beforeMs) => [id, highOf(beforeMs)],
  },
  {
    text: `${completedAnd(`(t.completed_at, t.id) > ($4::timestamptz, $5::uuid) AND ${isSlow}`, "t.completed_at::text")}
      ORDER BY t.completed_at, t.id LIMIT ${pageRows}`,
    ...byTime,
  },
  {
    text: `${completedAnd(
      `(t.created_at, t.id) > ($4::timestamptz, $5::uuid) AND t.created_at < $3 AND ${isUntimed} AND NOT (${isSlow})`,
      "t.created_at::text",
    )}
      ORDER BY t.created_at, t.id LIMIT ${pageRows}`,
    ...byTime,
  },
  {
    text: `
      SELECT 'reversal' AS kind, coalesce(r.ended_at, r.due_at) AS at, ${columns},
        coalesce(r.ended_at, r.due_at)::text AS key
      FROM reversals r JOIN transactions t ON t.partner_id = r.partner_id AND t.id = r.transaction_id
      WHERE r.partner_id = $1 AND (r.ended_at IS NOT NULL OR r.state = 'DONE') AND coalesce(r.ended_at, r.due_at) >= $2
        AND coalesce(r.ended_at, r.due_at) < $3
        AND (coalesce(r.ended_at, r.due_at), r.transaction_id) > ($4::timestamptz, $5::uuid)
        AND ${statusTold} = 'SUCCESS' AND t.command IN ${commands}
      ORDER BY coalesce(r.ended_at, r.due_at), r.transaction_id LIMIT ${pageRows}`,
    ...byTime,
  },
  // Its partner was told that it failed, or that it was reversed.
  {
    text: `
      SELECT 'stands' AS kind, r.stood_at AS at, ${columns}, r.stood_at::text AS key
      FROM reversals r JOIN transactions t ON t.partner_id = r.partner_id AND t.id = r.transaction_id
      WHERE r.partner_id = $1 AND r.stood_at >= $2 AND r.stood_at < $3
        AND (r.stood_at, r.transaction_id) > ($4::timestamptz, $5::uuid) AND t.command IN ${commands}
        AND (${statusTold} = 'ERROR' OR r.ended_at IS NOT NULL)
      ORDER BY r.stood_at, r.transaction_id LIMIT ${pageRows}`,
    ...byTime,
  },
  {
    text: `
      SELECT 'reversal' AS kind, r.completed_at AS at, ${columns}, r.completed_at::text AS key
      FROM transactions r JOIN transactions t ON t.partner_id = r.partner_id AND t.id = r.original_id
      WHERE r.partner_id = $1 AND r.command = 'REVERSAL' AND r.origin = 'switch' AND r.original_id IS NOT NULL
        AND r.completed_at >= $2 AND r.completed_at < $3
        AND (r.completed_at, r.original_id) > ($4::timestamptz, $5::uuid) AND r.state = 'SUCCESS'
        AND t.state = 'SUCCESS' AND t.command IN ${commands} AND NOT ${isUndoneBefore("t", "r")}
      ORDER BY r.completed_at, r.original_id LIMIT ${pageRows}`,
    ...byTime,
  },
];

const batches = (tid: string) => `
  SELECT b.id, b.tid, b.mid, b.batch_no AS "batchNo", b.currency, b.settlement_id AS "settlementId",
    (SELECT t.notification_id FROM transactions t WHERE t.partner_id = b.partner_id AND t.id = b.settlement_id)
      AS "notificationId",
    b.sale_quantity AS "saleQuantity", b.sale_total_minor::text AS "saleTotalMinor",
    b.void_quantity AS "voidQuantity", b.void_total_minor::text AS "voidTotalMinor",
    b.refund_quantity AS "refundQuantity", b.refund_total_minor::text AS "refundTotalMinor", b.closed_at AS "closedAt"
  FROM batches b
  WHERE b.partner_id = $1 AND b.settlement_id < $2::uuid AND b.closed_at >= $3 AND b.closed_at < $4 ${tid}
  ORDER BY b.settlement_id DESC LIMIT $5`;

const settlements = (tid: string) => `
  SELECT t.id, t.state, t.req_id AS "reqId", t.notification_id AS "notificationId", t.facts ->> 'currency' AS currency,
    t.facts -> 'fields' AS fields, coalesce(json_array_length(t.facts -> 'settlementList'), 0) AS listed,
    t.created_at AS "createdAt", t.completed_at AS "completedAt"
  FROM transactions t
  WHERE t.partner_id = $1 AND t.command = 'SETTLEMENT' AND t.id < $2::uuid
    AND coalesce(t.completed_at, t.created_at) >= $3 AND coalesce(t.completed_at, t.created_at) < $4 ${tid}
  ORDER BY t.id DESC LIMIT $5`;

interface Row extends StatementRow {
  readonly key: string;
  /** From the start: its Reversal was reported before. */
  readonly isReversed?: boolean;
}

/** The partners' view of their own books, in PostgreSQL. */
export function postgresStatements(homes: Homes): StatementStore {
  /** A terminal has its own index. */
  async function list<Item extends object>(
    textOf: (condition: string) => string,
    column: string,
    partnerId: PartnerId,
    { tid, fromMs, toMs, after, limit }: OwnSearch,
  ): Promise<readonly Item[]> {
    const from = fromMs === undefined ? "-infinity" : new Date(fromMs);
    const to = toMs === undefined ? "infinity" : new Date(toMs);
    const values = [partnerId, after ?? highestId, from, to, limit, ...(tid === undefined ? [] : [tid])];
    const text = textOf(tid === undefined ? "" : `AND ${column} = $6`);
    return await queryAlongIndexes<Item>(homes.of(partnerId).pool, text, values);
  }

  return {
    async *lines(partnerId, fromMs, beforeMs) {
      const { pool } = homes.of(partnerId);
      for (const { text, first, next } of sources) {
        let place: readonly string[] | undefined = first(fromMs, beforeMs);
        while (place !== undefined) {
          const values: readonly unknown[] = [partnerId, new Date(fromMs), new Date(beforeMs), ...place];
          const rows: readonly Row[] = await queryAlongIndexes<Row>(pool, text, values);
          yield rows.flatMap((row) =>
            row.isReversed === true && row.state === "SUCCESS" ? [row, { ...row, kind: "reversal" }] : row,
          );
          const last = rows.at(-1);
          place = rows.length < pageRows || last === undefined ? undefined : next(last, beforeMs);
        }
      }
    },

    batches: (partnerId, search) => list<ClosedBatch>(batches, "b.tid", partnerId, search),

    settlements: (partnerId, search) => list<SettlementRow>(settlements, "t.tid", partnerId, search),
  };
}
