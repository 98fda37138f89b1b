import { isDeepStrictEqual } from "node:util";
import { chargingCommands } from "@paybell/contract";
import type { ClientBase } from "pg";
import type { BatchTotals } from "../../acquirer/acquirer.ts";
import { newId, nilId, type PartnerId, type TransactionId } from "../../ids.ts";
import type {
  BatchEntry,
  DueSettlement,
  LateSettlement,
  SettlementStore,
  UnansweredSettlement,
} from "../../ledger/settlements/store.ts";
import { dueClaim } from "../database/claims.ts";
import type { Homes } from "../database/homes.ts";
import { prepared } from "../database/statement.ts";
import { inTransaction } from "../database/transaction.ts";
import { sixDigits } from "../terminals/sequences.ts";
import { commandsInSql, isStanding, isVoided } from "../transactions/conditions.ts";

const due = `r.id, r.kind, r.tid, r.batch_id AS "batchId", r.step, r.is_uploaded AS "isUploaded",
    r.uploaded_up_to AS "uploadedUpTo", r.tries`;

const claim = dueClaim<DueSettlement>({
  table: "settlements",
  key: "id",
  dueAt: "due_at",
  changes: "tries = r.tries + 1",
  returning: due,
});

const findDue = prepared<DueSettlement>(`
  SELECT r.partner_id AS "partnerId", ${due} FROM settlements r WHERE r.partner_id = $1 AND r.id = $2`);

// Each claim has another number of tries at its step, and no step comes again.
const claimed = `partner_id = $1 AND id = $2 AND step = $3 AND is_uploaded = $4
      AND uploaded_up_to IS NOT DISTINCT FROM $5::uuid AND tries = $6`;

const postpone = prepared(`UPDATE settlements SET due_at = now() + $7 * interval '1 millisecond' WHERE ${claimed}`);

const advance = prepared(`
  UPDATE settlements SET step = $8, is_uploaded = $9, uploaded_up_to = $10, tries = 1, trace_no = NULL,
    trace_count = NULL, numbered_at = NULL, due_at = now() + $7 * interval '1 millisecond'
  WHERE ${claimed}`);

// The last reserved number stays: the next entry has the next one.
const acknowledge = prepared(`
  UPDATE settlements SET uploaded_up_to = $8, trace_count = trace_count - 1, tries = 1,
    due_at = now() + $7 * interval '1 millisecond'
  WHERE ${claimed}`);

// Reserves this many numbers of its terminal, and returns the last; none if some were reserved before. Only the
// claiming instance runs this.
const number = prepared<{ last: number; count: number; at: Date; repeat: boolean }>(`
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
      NOT EXISTS (SELECT FROM taken) AS repeat`);

// The rule is at `SettlementStore.advance`. Who decides on a Reversal has the lock of its terminal.
const lockTerminal = prepared("SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR UPDATE");
const isQuiet = prepared<{ quiet: boolean }>(`
  SELECT NOT EXISTS (
      SELECT FROM transactions t WHERE t.partner_id = $1 AND t.tid = $2 AND t.state = 'INIT'
        AND t.command NOT IN ('SETTLEMENT', 'LOGON'))
    AND NOT EXISTS (
      SELECT FROM reversals r WHERE r.partner_id = $1 AND r.tid = $2 AND r.state = 'PENDING') AS quiet`);

// The counted transactions: successful Sales and PreAuth-Completes, voided ones included, their Voids, and Refunds; no
// reversed ones.
const sales = commandsInSql(chargingCommands);
const counted = (name: string, commands: string) => `
      count(*) FILTER (WHERE t.command ${commands}) AS "${name}Quantity",
      coalesce(sum(t.amount_minor) FILTER (WHERE t.command ${commands}), 0)::text AS "${name}TotalMinor"`;
const countBatch = prepared<TotalsInJson>(`
  SELECT coalesce(max(t.currency), '') AS currency,
    ${counted("sale", `IN ${sales}`)}, ${counted("void", "= 'VOID'")}, ${counted("refund", "= 'REFUND'")}
    FROM transactions t
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND ${isStanding}`);

const listEntries = prepared<Omit<BatchEntry, "amountMinor"> & { amountText: string }>(`
  SELECT t.id, t.chain_id AS "chainId", t.command, t.facts -> 'fields' AS fields,
    t.amount_minor::text AS "amountText", t.currency,
    ${isVoided} AS voided
  FROM transactions t
  WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.id > $3 AND t.command <> 'VOID' AND ${isStanding}
  ORDER BY t.id LIMIT $4`);

const listCounted = prepared<{ reqId: string; refNo: string }>(`
    SELECT coalesce(t.facts #>> '{fields,reqId}', '') AS "reqId", coalesce(t.facts #>> '{fields,refId}', '') AS "refNo"
    FROM transactions t
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.command IN ${sales} AND ${isStanding}
      AND NOT ${isVoided}
    ORDER BY t.id`);

const lateOf = prepared<{ late: LateSettlement }>(`
  SELECT late_settlement AS late FROM terminals
  WHERE partner_id = $1 AND tid = $2 AND late_settlement ->> 'batchId' = $3`);

/**
 * Closes a batch, unless that has happened: $1 is the partner, $2 the terminal, $3 the batch, $4 the one that is open
 * from now on, $5 to $13 are those of `closedBatch`.
 */
export const closeBatchWith = (sets: string) =>
  prepared(`
  WITH terminal AS (
    UPDATE terminals SET ${sets}, batch_id = $4, batch_no = batch_no % 999999 + 1, batch_currency = NULL
    WHERE partner_id = $1 AND tid = $2 AND batch_id = $3
    RETURNING partner_id, tid, mid)
  INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity, sale_total_minor,
    void_quantity, void_total_minor, refund_quantity, refund_total_minor)
  SELECT partner_id, $3, tid, mid, $5, $6, $7, $8, $9, $10, $11, $12, $13 FROM terminal
  ON CONFLICT DO NOTHING`);

/** The values of a batch that closes. */
export function closedBatch(
  { partnerId, tid, batchId, batchNo, settlementId }: ClosingBatch,
  { currency, ...figures }: BatchTotals,
): readonly unknown[] {
  const { saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor, refundQuantity, refundTotalMinor } = figures;
  const counted = [saleQuantity, saleTotalMinor, voidQuantity, voidTotalMinor, refundQuantity, refundTotalMinor];
  return [partnerId, tid, batchId, newId(), batchNo, currency, settlementId, ...counted];
}

interface ClosingBatch {
  readonly partnerId: PartnerId;
  readonly tid: string;
  readonly batchId: string;
  readonly batchNo: string;
  readonly settlementId: TransactionId;
}

// Settlements whose totals have been sent: those that run, and those that ended without the acquirer's word.
const unanswered = (ofTerminal: string) =>
  prepared<UnansweredRow>(`
  SELECT t.partner_id AS "partnerId", u.id, t.tid, u."batchId", u."isUploaded", u."traceNo", u."atMs", u.totals
  FROM terminals t CROSS JOIN LATERAL jsonb_to_recordset(t.unanswered_settlements) AS u (id uuid, "batchId" uuid,
    "isUploaded" boolean, "traceNo" integer, "atMs" double precision, totals jsonb, "untilMs" double precision)
  WHERE ${ofTerminal} AND t.unanswered_settlements IS NOT NULL AND u."untilMs" > extract(epoch FROM now()) * 1000
  UNION ALL
  SELECT t.partner_id, t.id, t.tid, t.batch_id, t.is_uploaded, t.trace_no,
    (extract(epoch FROM t.numbered_at) * 1000)::double precision, NULL::jsonb
  FROM settlements t WHERE ${ofTerminal} AND t.kind = 'SETTLEMENT' AND t.step = 'sending'`);
const unansweredOfTerminal = unanswered("t.tid = $1");
const unansweredOfAny = unanswered("$1::text = ''");

// Commands of the terminal wait for this lock, and later statements of its transaction see those that had it before.
const lockOpenBatch = prepared(`
  SELECT FROM terminals
  WHERE partner_id = $1 AND tid = $2 AND batch_id = $3 AND late_settlement IS NULL FOR UPDATE`);

// Nothing enters a batch that is closing, so that everything after the Settlement came after its abort. What is in flight
// is seen by `isQuiet`.
const hasEntered = prepared<{ entered: boolean }>(`
  SELECT EXISTS (
    SELECT FROM transactions t, transactions s
    WHERE t.partner_id = $1 AND t.batch_id = $2 AND t.state = 'SUCCESS'
      AND s.partner_id = $1 AND s.id = $3 AND t.created_at > s.created_at) AS entered`);

const keepLate = prepared("UPDATE terminals SET late_settlement = $3 WHERE partner_id = $1 AND tid = $2");

const closeLate = closeBatchWith("late_settlement = $14");

const resolveLate = prepared(`
  UPDATE terminals SET late_settlement = NULL
  WHERE partner_id = $1 AND late_settlement ->> 'settlementId' = $2 AND late_settlement ->> 'state' = 'entered'`);

/** Running settlements and Batch Uploads, and their batches, in PostgreSQL. */
export function postgresSettlements(homes: Homes): SettlementStore {
  return {
    claimDue: (rowsMax, heldForMs) => claim(homes, rowsMax, heldForMs),

    async find(partnerId, id) {
      const { engine } = homes.of(partnerId);
      return await findDue.first(engine, [partnerId, id]);
    },

    async postpone(settlement, delayMs) {
      const { engine } = homes.of(settlement.partnerId);
      return (await postpone.run(engine, [...claimOf(settlement), delayMs])) === 1;
    },

    async advance(from, to, heldForMs) {
      const { step, isUploaded, uploadedUpTo } = to;
      const values = [...claimOf(from), heldForMs, step, isUploaded, uploadedUpTo];
      const { partnerId, tid } = from;
      const { engine } = homes.of(partnerId);
      if (from.step !== "waiting" || step !== "sending") return (await advance.run(engine, values)) === 1;
      return inTransaction(engine, async (client) => {
        await lockTerminal.run(client, [partnerId, tid]);
        return (await isQuietNow(client, partnerId, tid)) && (await advance.run(client, values)) === 1;
      });
    },

    async acknowledge(from, upTo, heldForMs) {
      const values = [...claimOf(from), heldForMs, upTo];
      return (await acknowledge.run(homes.of(from.partnerId).engine, values)) === 1;
    },

    async reserveTraceNumbers({ partnerId, id }, count) {
      const row = await number.first(homes.of(partnerId).engine, [partnerId, id, count]);

      if (row === undefined) throw new Error(`The settlement ${id} has ended.`);
      const first = row.last - row.count + 1;
      const traceNos = Array.from({ length: row.count }, (_, nth) => sixDigits(first + nth));
      return { traceNos, atMs: row.at.getTime(), repeat: row.repeat };
    },

    async late(partnerId, tid, batchId) {
      const row = await lateOf.first(homes.of(partnerId).engine, [partnerId, tid, batchId]);
      return row?.late;
    },

    async unanswered(tid) {
      const statement = tid === "" ? unansweredOfAny : unansweredOfTerminal;
      return homes.gather(async ({ engine }) => {
        const rows = await statement.rows(engine, [tid]);
        return rows.map(({ traceNo, atMs, totals, ...sent }) => ({
          ...sent,
          // The message was sent with the time as a Date has it.
          numbers:
            traceNo === null || atMs === null ? undefined : { traceNo: sixDigits(traceNo), atMs: Math.floor(atMs) },
          totals: totals === null ? undefined : totalsFromJson(totals),
        }));
      });
    },

    async keepLate(partnerId, tid, { totals, ...settled }) {
      const { settlementId, batchId, batchNo } = settled;
      return inTransaction(homes.of(partnerId).engine, async (client) => {
        if ((await lockOpenBatch.run(client, [partnerId, tid, batchId])) === 0) return undefined;
        const now = await totalsNow(client, partnerId, batchId);
        const row = await hasEntered.first(client, [partnerId, batchId, settlementId]);
        const isUnchanged =
          row?.entered === false && isDeepStrictEqual(now, totals) && (await isQuietNow(client, partnerId, tid));
        const state = isUnchanged ? ("closed" as const) : ("entered" as const);
        const late = JSON.stringify({ ...settled, state });
        if (state === "entered") {
          await keepLate.run(client, [partnerId, tid, late]);
          return state;
        }
        const closing = closedBatch({ partnerId, tid, batchId, batchNo, settlementId }, totals);
        await closeLate.run(client, [...closing, late]);
        return state;
      });
    },

    async resolveLate(partnerId, settlementId) {
      const { engine } = homes.of(partnerId);
      return (await resolveLate.run(engine, [partnerId, settlementId])) === 1;
    },

    totals: (partnerId, batchId) => totalsNow(homes.of(partnerId).engine, partnerId, batchId),

    async entries(partnerId, batchId, after, rowsMax) {
      const values = [partnerId, batchId, after ?? nilId, rowsMax];
      const rows = await listEntries.rows(homes.of(partnerId).engine, values);
      return rows.map(({ amountText, ...entry }) => ({ ...entry, amountMinor: BigInt(amountText) }));
    },

    async counted(partnerId, batchId) {
      return await listCounted.rows(homes.of(partnerId).engine, [partnerId, batchId]);
    },
  };
}

async function isQuietNow(client: Pick<ClientBase, "query">, partnerId: PartnerId, tid: string): Promise<boolean> {
  const row = await isQuiet.first(client, [partnerId, tid]);
  return row?.quiet ?? false;
}

async function totalsNow(
  client: Pick<ClientBase, "query">,
  partnerId: PartnerId,
  batchId: string,
): Promise<BatchTotals> {
  const row = await countBatch.first(client, [partnerId, batchId]);

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
