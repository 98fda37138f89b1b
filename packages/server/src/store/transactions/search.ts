import type { PartnerId } from "../../ids.ts";
import type { MoneyItem, MoneyKind, MoneySearch, MoneyStore } from "../../ledger/money-operations.ts";
import { queryAlongIndexes } from "../database/along-indexes.ts";
import type { Homes } from "../database/homes.ts";
import { serviceId } from "../events.ts";

const highestId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

interface Shown {
  readonly from: string;
  readonly id: string;
  /** The expression that `state` is compared with. */
  readonly state: string;
  readonly columns: string;
}

const shown: Readonly<Record<MoneyKind, Shown>> = {
  transactions: {
    from: "transactions",
    id: "id",
    state: "x.state",
    columns: `x.origin, x.command, x.state, x.tid, x.batch_no AS "batchNo", x.req_id AS "reqId",
      x.external_id AS "externalId", x.original_id AS "originalId", x.facts #>> '{fields,amount}' AS amount,
      x.facts #>> '{fields,currency}' AS currency, x.facts #>> '{fields,isoResponseCode}' AS "isoResponseCode",
      x.facts #>> '{fields,approveCode}' AS "approveCode", x.facts #>> '{fields,refId}' AS "refId",
      x.facts #>> '{fields,settlementDate}' AS "settlementDate", x.acquirer,
      x.reversal_state AS reversal, x.created_at AS "createdAt", x.completed_at AS "completedAt"`,
  },
  batches: {
    from: "batches",
    id: "id",
    state: "'CLOSED'",
    columns: `x.tid, x.mid, x.batch_no AS "batchNo", x.currency, x.settlement_id AS "settlementId",
      x.sale_quantity AS "saleQuantity", x.sale_total_minor::text AS "saleTotalMinor",
      x.void_quantity AS "voidQuantity", x.void_total_minor::text AS "voidTotalMinor",
      x.refund_quantity AS "refundQuantity", x.refund_total_minor::text AS "refundTotalMinor",
      x.closed_at AS "closedAt"`,
  },
  settlements: {
    from: "settlements",
    id: "id",
    state: "x.step",
    columns: `x.kind, x.tid, x.batch_id AS "batchId", x.step AS state, x.is_uploaded AS "isUploaded", x.tries,
      x.due_at AS "dueAt", x.created_at AS "createdAt"`,
  },
  reversals: {
    from: "reversals",
    id: "transaction_id",
    state: "x.state",
    columns: `x.tid, x.state, x.requested_by AS "requestedBy", x.response_code AS "responseCode", x.tries,
      x.due_at AS "dueAt", x.created_at AS "createdAt"`,
  },
  events: {
    from: "events",
    id: "id",
    state: "x.kind",
    columns: `x.kind, x.subject_id AS "subjectId", x.detail, x.created_at AS at`,
  },
};

// Partner by partner along its key: a page of each, and the newest of all of them.
function pageOf(kind: MoneyKind): string {
  const { from, id, state, columns } = shown[kind];
  return `
    SELECT x.${id} AS id, nullif(x.partner_id, '${serviceId}') AS "partnerId", ${columns}
    FROM (SELECT p.id FROM partners p UNION ALL SELECT '${serviceId}') AS p
    CROSS JOIN LATERAL (
      SELECT * FROM ${from} x
      WHERE x.partner_id = p.id AND x.${id} < $2::uuid AND ($3::text IS NULL OR ${state} = $3)
        ${kind === "transactions" ? "AND NOT x.is_tombstone" : ""}
      ORDER BY x.${id} DESC LIMIT $4) AS x
    WHERE $1::uuid IS NULL OR p.id = $1
    ORDER BY x.${id} DESC LIMIT $4`;
}

function oneOf(kind: MoneyKind): string {
  const { from, id, columns } = shown[kind];
  return `
    SELECT x.${id} AS id, nullif(x.partner_id, '${serviceId}') AS "partnerId", ${columns}
    FROM (SELECT p.id FROM partners p UNION ALL SELECT '${serviceId}') AS p
    JOIN ${from} x ON x.partner_id = p.id AND x.${id} = $1
    LIMIT 1`;
}

// From a transaction up to its first original, then down to all that refer to one of them: a Sale has few.
const chain = `
  WITH RECURSIVE first AS (
    SELECT t.id, t.original_id, 1 AS depth FROM transactions t WHERE t.partner_id = $1 AND t.id = $2
    UNION ALL
    SELECT t.id, t.original_id, f.depth + 1 FROM first f
    JOIN transactions t ON t.partner_id = $1 AND t.id = f.original_id WHERE f.depth < 10),
  linked AS (
    (SELECT f.id, 1 AS depth FROM first f ORDER BY f.depth DESC LIMIT 1)
    UNION ALL
    SELECT t.id, l.depth + 1 FROM linked l
    JOIN transactions t ON t.partner_id = $1 AND t.original_id = l.id WHERE l.depth < 10)
  SELECT x.id, x.partner_id AS "partnerId", ${shown.transactions.columns},
    x.facts #>> '{fields,merchantTransId}' AS "merchantTransId", x.notification_id AS "notificationId",
    x.batch_id AS "batchId", x.successor_command AS "successorCommand", x.successor_state AS "successorState"
  FROM (SELECT DISTINCT l.id FROM linked l LIMIT 100) AS l
  JOIN transactions x ON x.partner_id = $1 AND x.id = l.id AND NOT x.is_tombstone
  ORDER BY x.created_at, x.id`;

/** Transactions, Reversals and settlements for the operator, in PostgreSQL. */
export class PostgresMoney implements MoneyStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  async search(kind: MoneyKind, { partner, state, after, limit }: MoneySearch): Promise<readonly MoneyItem[]> {
    const values = [partner ?? null, after ?? highestId, state ?? null, limit];
    const rows = await this.#homes.gather(
      async ({ pool }) => (await queryAlongIndexes<MoneyItem>(pool, pageOf(kind), values)).rows,
    );
    return [...rows].sort((a, b) => (a.id < b.id ? 1 : -1)).slice(0, limit);
  }

  async find(kind: MoneyKind, id: string): Promise<MoneyItem | undefined> {
    const [item] = await this.#homes.gather(
      async ({ pool }) => (await queryAlongIndexes<MoneyItem>(pool, oneOf(kind), [id])).rows,
    );
    return item;
  }

  async chain(partnerId: PartnerId, id: string): Promise<readonly MoneyItem[]> {
    return (await this.#homes.of(partnerId).pool.query<MoneyItem>(chain, [partnerId, id])).rows;
  }
}
