import { isDeepStrictEqual } from "node:util";
import { chargingCommands } from "@paybell/contract";
import type { ClientBase } from "pg";
import type { BatchTotals } from "../../acquirer/acquirer.ts";
import { nilId, type PartnerId, type TransactionId } from "../../ids.ts";
import type {
  BatchEntry,
  DueSettlement,
  LateSettlement,
  MessageNumbers,
  SettlementStore,
  UnansweredSettlement,
} from "../../ledger/settler.ts";
import { dueClaim } from "../database/claims.ts";
import type { Homes } from "../database/homes.ts";
import { inTransaction } from "../database/transaction.ts";
import { sixDigits } from "../terminals/sequences.ts";
import { commandsInSql } from "../transactions/command-lists.ts";

const due = `r.id, r.kind, r.tid, r.batch_id AS "batchId", r.step, r.is_uploaded AS "isUploaded",
    r.uploaded_up_to AS "uploadedUpTo", r.tries`;

const claim = dueClaim<DueSettlement>({
  name: "take_due_settlements",
  table: "settlements",
  key: "id",
  dueAt: "due_at",
  changes: "tries = r.tries + 1",
  returning: due,
});

const findDue = {
  name: "find_settlement",
  text: `
    SELECT r.partner_id AS "partnerId", ${due} FROM settlements r WHERE r.partner_id = $1 AND r.id = $2`,
};

// Each claim has another number of tries at its step, and no step comes again.
const claimed = `partner_id = $1 AND id = $2 AND step = $3 AND is_uploaded = $4
      AND uploaded_up_to IS NOT DISTINCT FROM $5::uuid AND tries = $6`;

const postpone = {
  name: "postpone_settlement",
  text: `UPDATE settlements SET due_at = now() + $7 * interval '1 millisecond' WHERE ${claimed}`,
};

const advance = {
  name: "advance_settlement",
  text: `
    UPDATE settlements SET step = $8, is_uploaded = $9, uploaded_up_to = $10, tries = 1, trace_no = NULL,
      trace_count = NULL, numbered_at = NULL, due_at = now() + $7 * interval '1 millisecond'
    WHERE ${claimed}`,
};

// The last reserved number stays: the next entry has the next one.
const acknowledge = {
  name: "acknowledge_upload",
  text: `
    UPDATE settlements SET uploaded_up_to = $8, trace_count = trace_count - 1, tries = 1,
      due_at = now() + $7 * interval '1 millisecond'
    WHERE ${claimed}`,
};

// Reserves this many numbers of its terminal, and returns the last; none if some were reserved before. Only the
// claiming instance runs this.
const number = {
  name: "number_settlement",
  text: `
    WITH c AS MATERIALIZED (SELECT now() AS now),
    taken AS (
      UPDATE terminals r SET trace_no = (r.trace_no + $3 - 1) % 999999 + 1
      FROM settlements s
      WHERE s.partner_id = $1 AND s.id = $2 AND s.trace_no IS NULL AND r.partner_id = s.partner_id AND r.tid = s.tid
      RETURNING r.trace_no)
    UPDATE settlements s SET
      trace_no = coalesce((SELECT t.trace_no FROM taken t), s.trace_no),
      trace_count = CASE WHEN EXISTS (SELECT FROM taken) THEN $3 ELSE s.trace_count END,
      numbered_at = CASE WHEN EXISTS (SELECT FROM taken) THEN c.now ELSE s.numbered_at END
    FROM c
    WHERE s.partner_id = $1 AND s.id = $2
    RETURNING s.trace_no AS last, s.trace_count AS count, s.numbered_at AS at,
      NOT EXISTS (SELECT FROM taken) AS repeat`,
};

// A command in flight may still enter the batch, and a running Reversal may still remove one. A Batch Upload between
// the messages of the settlement would make the host count twice.
const isQuiet = {
  name: "is_terminal_quiet",
  text: `
    SELECT NOT EXISTS (
        SELECT FROM transactions t WHERE t.partner_id = $1 AND t.tid = $2 AND t.state = 'INIT'
          AND t.command NOT IN ('SETTLEMENT', 'LOGON'))
      AND NOT EXISTS (
        SELECT FROM reversals r WHERE r.partner_id = $1 AND r.tid = $2 AND r.state = 'PENDING') AS quiet`,
};

// The counted transactions: successful Sales and PreAuth-Completes, voided ones included, their Voids, and Refunds; no
// reversed ones.
const sales = commandsInSql(chargingCommands);
const counted = (name: string, commands: string) => `
      count(*) FILTER (WHERE t.command ${commands}) AS "${name}Quantity",
      coalesce(sum(t.amount_minor) FILTER (WHERE t.command ${commands}), 0)::text AS "${name}TotalMinor"`;
const countBatch = {
  name: "count_batch",
  text: `
    SELECT coalesce(max(t.currency), '') AS currency,
      ${counted("sale", `IN ${sales}`)}, ${counted("void", "= 'VOID'")}, ${counted("refund", "= 'REFUND'")}
    FROM transactions t
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.state = 'SUCCESS' AND t.reversal_state IS DISTINCT FROM 'done'`,
};

const listEntries = {
  name: "list_batch_entries",
  text: `
    SELECT t.id, t.chain_id AS "chainId", t.command, t.facts -> 'fields' AS fields,
      t.amount_minor::text AS "amountText", t.currency,
      t.successor_command IS NOT DISTINCT FROM 'VOID' AND t.successor_state IS NOT DISTINCT FROM 'done' AS voided
    FROM transactions t
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.id > $3 AND t.command <> 'VOID' AND t.state = 'SUCCESS'
      AND t.reversal_state IS DISTINCT FROM 'done'
    ORDER BY t.id LIMIT $4`,
};

const listCounted = {
  name: "list_batch_counted",
  text: `
    SELECT coalesce(t.facts #>> '{fields,reqId}', '') AS "reqId", coalesce(t.facts #>> '{fields,refId}', '') AS "refNo"
    FROM transactions t
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.command IN ${sales} AND t.state = 'SUCCESS'
      AND t.reversal_state IS DISTINCT FROM 'done'
      AND NOT (t.successor_command IS NOT DISTINCT FROM 'VOID' AND t.successor_state IS NOT DISTINCT FROM 'done')
    ORDER BY t.id`,
};

const lateOf = {
  name: "late_settlement",
  text: `
    SELECT late_settlement AS late FROM terminals
    WHERE partner_id = $1 AND tid = $2 AND late_settlement ->> 'batchId' = $3`,
};

// Settlements whose totals have been sent: those that run, and those that ended without the acquirer's word.
const unanswered = (name: string, ofTerminal: string) => ({
  name,
  text: `
    SELECT t.partner_id AS "partnerId", u.id, t.tid, u."batchId", u."isUploaded", u."traceNo", u."atMs", u.totals
    FROM terminals t CROSS JOIN LATERAL jsonb_to_recordset(t.unanswered_settlements) AS u (id uuid, "batchId" uuid,
      "isUploaded" boolean, "traceNo" integer, "atMs" double precision, totals jsonb, "untilMs" double precision)
    WHERE ${ofTerminal} AND t.unanswered_settlements IS NOT NULL AND u."untilMs" > extract(epoch FROM now()) * 1000
    UNION ALL
    SELECT t.partner_id, t.id, t.tid, t.batch_id, t.is_uploaded, t.trace_no,
      (extract(epoch FROM t.numbered_at) * 1000)::double precision, NULL::jsonb
    FROM settlements t WHERE ${ofTerminal} AND t.kind = 'SETTLEMENT' AND t.step = 'sending'`,
});
const unansweredOfTerminal = unanswered("unanswered_of_terminal", "t.tid = $1");
const unansweredOfAny = unanswered("unanswered_of_any", "$1::text = ''");

// Commands of the terminal wait for this lock, and later statements of its transaction see those that had it before.
const lockOpenBatch = {
  name: "lock_open_batch",
  text: `
    SELECT FROM terminals
    WHERE partner_id = $1 AND tid = $2 AND batch_id = $3 AND late_settlement IS NULL FOR UPDATE`,
};

// Nothing enters a batch that is closing, so that everything after the Settlement came after its abort.
const hasEntered = {
  name: "has_entered_since",
  text: `
    SELECT EXISTS (
      SELECT FROM transactions t, transactions s
      WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.state IN ('INIT', 'SUCCESS')
        AND s.partner_id = $1 AND s.id = $3 AND t.created_at > s.created_at) AS entered`,
};

const keepLate = {
  name: "keep_late_settlement",
  text: "UPDATE terminals SET late_settlement = $3 WHERE partner_id = $1 AND tid = $2",
};

const closeLate = {
  name: "close_late_batch",
  text: `
    WITH terminal AS (
      UPDATE terminals SET late_settlement = $3, batch_id = gen_random_uuid(), batch_no = batch_no % 999999 + 1,
        batch_currency = NULL
      WHERE partner_id = $1 AND tid = $2
      RETURNING partner_id, tid, mid)
    INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity, sale_total_minor,
      void_quantity, void_total_minor, refund_quantity, refund_total_minor)
    SELECT partner_id, $4, tid, mid, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM terminal`,
};

const resolveLate = {
  name: "resolve_late_settlement",
  text: `
    UPDATE terminals SET late_settlement = NULL
    WHERE partner_id = $1 AND late_settlement ->> 'settlementId' = $2 AND late_settlement ->> 'state' = 'entered'`,
};

/** Running settlements and Batch Uploads, and their batches, in PostgreSQL. */
export class PostgresSettlements implements SettlementStore {
  readonly #homes: Homes;

  constructor(homes: Homes) {
    this.#homes = homes;
  }

  claimDue(rowsMax: number, heldForMs: number): Promise<readonly DueSettlement[]> {
    return claim(this.#homes, rowsMax, heldForMs);
  }

  async find(partnerId: PartnerId, id: TransactionId): Promise<DueSettlement | undefined> {
    const { engine } = this.#homes.of(partnerId);
    return (await engine.query<DueSettlement>({ ...findDue, values: [partnerId, id] })).rows[0];
  }

  async postpone(settlement: DueSettlement, delayMs: number): Promise<boolean> {
    const { engine } = this.#homes.of(settlement.partnerId);
    return (await engine.query({ ...postpone, values: [...claimOf(settlement), delayMs] })).rowCount === 1;
  }

  async advance(from: DueSettlement, to: DueSettlement, heldForMs: number): Promise<boolean> {
    const { step, isUploaded, uploadedUpTo } = to;
    const values = [...claimOf(from), heldForMs, step, isUploaded, uploadedUpTo];
    return (await this.#homes.of(from.partnerId).engine.query({ ...advance, values })).rowCount === 1;
  }

  async acknowledge(from: DueSettlement, upTo: TransactionId, heldForMs: number): Promise<boolean> {
    const values = [...claimOf(from), heldForMs, upTo];
    return (await this.#homes.of(from.partnerId).engine.query({ ...acknowledge, values })).rowCount === 1;
  }

  async reserveTraceNumbers({ partnerId, id }: DueSettlement, count: number): Promise<MessageNumbers> {
    const { rows } = await this.#homes
      .of(partnerId)
      .engine.query<{ last: number; count: number; at: Date; repeat: boolean }>({
        ...number,
        values: [partnerId, id, count],
      });
    const [row] = rows;
    if (row === undefined) throw new Error(`The settlement ${id} has ended.`);
    const first = row.last - row.count + 1;
    const traceNos = Array.from({ length: row.count }, (_, nth) => sixDigits(first + nth));
    return { traceNos, atMs: row.at.getTime(), repeat: row.repeat };
  }

  async isQuiet(partnerId: PartnerId, tid: string): Promise<boolean> {
    return isQuietNow(this.#homes.of(partnerId).engine, partnerId, tid);
  }

  async late(partnerId: PartnerId, tid: string, batchId: string): Promise<LateSettlement | undefined> {
    const { rows } = await this.#homes
      .of(partnerId)
      .engine.query<{ late: LateSettlement }>({ ...lateOf, values: [partnerId, tid, batchId] });
    return rows[0]?.late;
  }

  async unanswered(tid: string): Promise<readonly UnansweredSettlement[]> {
    const statement = tid === "" ? unansweredOfAny : unansweredOfTerminal;
    return this.#homes.gather(async ({ engine }) => {
      const { rows } = await engine.query<UnansweredRow>({ ...statement, values: [tid] });
      return rows.map(({ traceNo, atMs, totals, ...sent }) => ({
        ...sent,
        // The message was sent with the time as a Date has it.
        numbers:
          traceNo === null || atMs === null ? undefined : { traceNo: sixDigits(traceNo), atMs: Math.floor(atMs) },
        totals: totals === null ? undefined : totalsFromJson(totals),
      }));
    });
  }

  async keepLate(
    partnerId: PartnerId,
    tid: string,
    { totals, ...settled }: Omit<LateSettlement, "state"> & { readonly totals: BatchTotals },
  ): Promise<LateSettlement["state"] | undefined> {
    const { settlementId, batchId, batchNo } = settled;
    return inTransaction(this.#homes.of(partnerId).engine, async (client) => {
      const { rowCount } = await client.query({ ...lockOpenBatch, values: [partnerId, tid, batchId] });
      if (rowCount !== 1) return undefined;
      const now = await totalsNow(client, partnerId, batchId);
      const { rows } = await client.query<{ entered: boolean }>({
        ...hasEntered,
        values: [partnerId, batchId, settlementId],
      });
      const isUnchanged =
        rows[0]?.entered === false && isDeepStrictEqual(now, totals) && (await isQuietNow(client, partnerId, tid));
      const state = isUnchanged ? ("closed" as const) : ("entered" as const);
      const late = JSON.stringify({ ...settled, state });
      if (state === "entered") {
        await client.query({ ...keepLate, values: [partnerId, tid, late] });
        return state;
      }
      const values = [partnerId, tid, late, batchId, batchNo, totals.currency, settlementId, ...figuresOf(totals)];
      await client.query({ ...closeLate, values });
      return state;
    });
  }

  async resolveLate(partnerId: PartnerId, settlementId: TransactionId): Promise<boolean> {
    const { engine } = this.#homes.of(partnerId);
    return (await engine.query({ ...resolveLate, values: [partnerId, settlementId] })).rowCount === 1;
  }

  totals(partnerId: PartnerId, batchId: string): Promise<BatchTotals> {
    return totalsNow(this.#homes.of(partnerId).engine, partnerId, batchId);
  }

  async entries(
    partnerId: PartnerId,
    batchId: string,
    after: TransactionId | null,
    rowsMax: number,
  ): Promise<readonly BatchEntry[]> {
    type Row = Omit<BatchEntry, "amountMinor"> & { readonly amountText: string };
    const values = [partnerId, batchId, after ?? nilId, rowsMax];
    const { rows } = await this.#homes.of(partnerId).engine.query<Row>({ ...listEntries, values });
    return rows.map(({ amountText, ...entry }) => ({ ...entry, amountMinor: BigInt(amountText) }));
  }

  async counted(partnerId: PartnerId, batchId: string): Promise<readonly { reqId: string; refNo: string }[]> {
    const { rows } = await this.#homes.of(partnerId).engine.query<{ reqId: string; refNo: string }>({
      ...listCounted,
      values: [partnerId, batchId],
    });
    return rows;
  }
}

async function isQuietNow(client: Pick<ClientBase, "query">, partnerId: PartnerId, tid: string): Promise<boolean> {
  const { rows } = await client.query<{ quiet: boolean }>({ ...isQuiet, values: [partnerId, tid] });
  return rows[0]?.quiet ?? false;
}

async function totalsNow(
  client: Pick<ClientBase, "query">,
  partnerId: PartnerId,
  batchId: string,
): Promise<BatchTotals> {
  const { rows } = await client.query<TotalsInJson>({ ...countBatch, values: [partnerId, batchId] });
  const [row] = rows;
  if (row === undefined) throw new Error("A count always has an answer.");
  return totalsFromJson(row);
}

function claimOf({ partnerId, id, step, isUploaded, uploadedUpTo, tries }: DueSettlement): unknown[] {
  return [partnerId, id, step, isUploaded, uploadedUpTo, tries];
}

/** Amounts are texts there. */
type TotalsInJson = {
  readonly [Name in keyof BatchTotals]: BatchTotals[Name] extends bigint ? string : BatchTotals[Name];
};

/** In the order of the columns of `batches`. */
export function figuresOf(totals: BatchTotals): readonly (number | bigint)[] {
  const { saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor, refundQuantity, refundTotalMinor } = totals;
  return [saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor, refundQuantity, refundTotalMinor];
}

export function totalsInJson(totals: BatchTotals): string {
  return JSON.stringify(totals, (_, value: unknown) => (typeof value === "bigint" ? `${value}` : value));
}

function totalsFromJson({ saleTotalMinor, voidTotalMinor, refundTotalMinor, ...others }: TotalsInJson): BatchTotals {
  const amounts = { saleTotalMinor, voidTotalMinor, refundTotalMinor };
  const minor = Object.entries(amounts).map(([name, text]) => [name, BigInt(text)]);
  return { ...others, ...(Object.fromEntries(minor) as Record<keyof typeof amounts, bigint>) };
}

interface UnansweredRow extends Omit<UnansweredSettlement, "numbers" | "totals"> {
  readonly traceNo: number | null;
  readonly atMs: number | null;
  readonly totals: TotalsInJson | null;
}
