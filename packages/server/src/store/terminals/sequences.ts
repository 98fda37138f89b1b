import type { PoolClient } from "pg";
import type { TerminalSequence, TerminalState } from "../../commands/terminal.ts";
import type { PartnerId } from "../../ids.ts";
import type { LateSettlement } from "../../ledger/settlements/store.ts";
import type { Init } from "../../ledger/store.ts";
import { Columns } from "../database/columns.ts";
import { prepared } from "../database/statement.ts";
import { isStanding } from "../transactions/conditions.ts";

// Every command on a terminal acquires this lock first, in key order, and holds it to the end of its transaction. The
// join is lateral, because a plan made while there were no terminals would otherwise read all of them later.
const lock = prepared<LockedRow>(`
  SELECT t.partner_id, t.tid, t.mid, t.acquirer, t.batch_id, t.batch_closing, t.batch_currency,
    t.late_settlement
  FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (partner_id, tid, nth)
  CROSS JOIN LATERAL (SELECT * FROM terminals t WHERE t.partner_id = i.partner_id AND t.tid = i.tid FOR UPDATE) AS t
  ORDER BY i.nth`);

/**
 * The currency of what counts in the batch `i`, or may once it ends. Measured: one look-up for each state reads 4 pages; a
 * condition "not ERROR" read all 100,000 declined rows of a batch.
 */
export const currencyThatCounts = `
    (SELECT t.currency FROM transactions t
      WHERE t.partner_id = i.partner_id AND t.batch_id = i.batch_id AND ${isStanding} LIMIT 1),
    (SELECT t.currency FROM transactions t
      WHERE t.partner_id = i.partner_id AND t.tid = i.tid AND t.batch_id = i.batch_id
        AND t.state = 'INIT' LIMIT 1)`;

// A currency does not bind the next command if no command in the open batch uses it any more. One in doubt may come to
// stand, and then counts in its batch. This is a separate statement after the terminals are locked: the locking statement
// sees other tables as they were before it waited, and would miss a command of another instance.
const boundInDoubt = (reversals: string) => `
    (SELECT t.currency FROM reversals v CROSS JOIN LATERAL (
        SELECT t.batch_id, t.currency FROM transactions t
        WHERE t.partner_id = v.partner_id AND t.id = v.transaction_id LIMIT 1) AS t
      WHERE v.partner_id = i.partner_id AND ${reversals} AND t.batch_id = i.batch_id LIMIT 1)`;
const bound = prepared<{ batch_id: string; currency: string | null }>(`
  SELECT i.batch_id, coalesce(${currencyThatCounts},
    ${boundInDoubt("v.tid = i.tid AND v.state = 'PENDING'")},
    ${boundInDoubt("v.state = 'PARKED'")}) AS currency
  FROM unnest($1::uuid[], $2::text[], $3::uuid[]) AS i (partner_id, tid, batch_id)`);

const terminalGroups = new Columns<TerminalGroup>({
  partner_id: ["uuid", ({ first }) => first.partnerId],
  tid: ["text", ({ first }) => first.tid],
  mid: ["text", ({ first }) => first.mid],
  trace_no: ["integer", ({ all }) => all.length],
  invoice_no: ["integer", ({ all }) => all.filter((init) => init.takes.invoiceNo).length],
  batch_currency: ["text", ({ all }) => all.find((init) => init.takes.batch)?.currency ?? null],
  batch_closing: ["boolean", ({ all }) => all.some((init) => init.takes.settlement === "SETTLEMENT")],
});
// A terminal is inserted with its first command.
const take = prepared<TerminalRow>(`
  INSERT INTO terminals AS t (partner_id, tid, mid, trace_no, invoice_no, batch_currency, batch_closing)
  SELECT * FROM ${terminalGroups.rows}
  ON CONFLICT (partner_id, tid) DO UPDATE SET
    trace_no = (t.trace_no + excluded.trace_no - 1) % 999999 + 1,
    invoice_no = CASE WHEN excluded.invoice_no = 0 THEN t.invoice_no
      ELSE (t.invoice_no + excluded.invoice_no - 1) % 999999 + 1 END,
    batch_currency = coalesce(excluded.batch_currency, t.batch_currency),
    batch_closing = t.batch_closing OR excluded.batch_closing
  RETURNING partner_id, tid, merchant_id, merchant_name, merchant_address, device_id, app_name,
    trace_no, invoice_no, batch_no, batch_id, late_settlement, t.xmax = 0 AS is_new`);

interface TerminalRow {
  readonly partner_id: PartnerId;
  readonly tid: string;
  readonly merchant_id: string;
  readonly merchant_name: string;
  readonly merchant_address: string;
  readonly device_id: string;
  readonly app_name: string;
  readonly trace_no: number;
  readonly invoice_no: number;
  readonly batch_no: number;
  readonly batch_id: string;
  readonly late_settlement: LateSettlement | null;
  readonly is_new: boolean;
}

/** The assigned numbers of a terminal, and its open batch. */
export interface AllottedSequence extends TerminalSequence {
  readonly batchId: string;
}

interface LockedRow {
  readonly partner_id: PartnerId;
  readonly tid: string;
  readonly mid: string;
  readonly acquirer: string;
  readonly batch_id: string;
  readonly batch_closing: boolean;
  readonly batch_currency: string | null;
  readonly late_settlement: LateSettlement | null;
}

/** Locks the existing terminals of these commands, and returns their states. */
export async function lockTerminals(client: PoolClient, inits: readonly Init[]): Promise<Map<string, TerminalState>> {
  const groups = groupByTerminal(inits.filter(({ tid }) => tid !== ""));
  if (groups.length === 0) return new Map();
  const rows = await lock.rows(client, [
    groups.map(({ first }) => first.partnerId),
    groups.map(({ first }) => first.tid),
  ]);
  const binding = await bindingCurrencies(client, groups, rows);
  return new Map(
    rows.map((row) => [
      `${row.partner_id} ${row.tid}`,
      {
        mid: row.mid,
        acquirer: row.acquirer,
        batch: row.batch_closing ? "closing" : "open",
        batchCurrency: binding.has(row.batch_id) ? (binding.get(row.batch_id) ?? null) : row.batch_currency,
        isSettlementInDoubt: row.late_settlement?.state === "entered",
      },
    ]),
  );
}

/** What binds the batches that a command enters with another currency than the last one: nothing, perhaps. */
async function bindingCurrencies(
  client: PoolClient,
  groups: readonly TerminalGroup[],
  rows: readonly LockedRow[],
): Promise<ReadonlyMap<string, string | null>> {
  const inits = new Map(groups.map(({ first, all }) => [terminalOf(first), all]));
  const asked = rows.filter(({ partner_id, tid, batch_currency }) =>
    inits
      .get(`${partner_id} ${tid}`)
      ?.some(({ takes, currency }) => takes.batch && batch_currency !== null && currency !== batch_currency),
  );
  if (asked.length === 0) return new Map();
  const binding = await bound.rows(client, [
    asked.map(({ partner_id }) => partner_id),
    asked.map(({ tid }) => tid),
    asked.map(({ batch_id }) => batch_id),
  ]);
  return new Map(binding.map(({ batch_id, currency }) => [batch_id, currency]));
}

/**
 * Assigns each command its terminal's next numbers, within the open transaction of `client`. `known` are the terminals
 * that were locked and checked. A command without numbers lost a race: another instance inserted its terminal
 * meanwhile, which may belong to another merchant or have a closing batch. It must be checked again, and this
 * transaction must be rolled back.
 */
export async function allotSequences(
  client: PoolClient,
  inits: readonly Init[],
  known: ReadonlySet<string>,
): Promise<ReadonlyMap<Init, AllottedSequence>> {
  const groups = groupByTerminal(inits.filter(({ takes }) => takes.traceNo));
  if (groups.length === 0) return new Map();
  const rows = await take.rows(client, terminalGroups.values(groups));
  const given = new Map(rows.map((row) => [`${row.partner_id} ${row.tid}`, row]));
  const allotted = new Map<Init, AllottedSequence>();
  for (const { first, all } of groups) {
    const row = given.get(terminalOf(first));
    if (row === undefined) continue;
    if (!row.is_new && !known.has(terminalOf(first))) continue;
    for (const [init, sequence] of assignNumbers(row, all)) allotted.set(init, sequence);
  }
  return allotted;
}

/** Splits the reserved numbers of a terminal among its group. The row now has the last ones. */
function assignNumbers(row: TerminalRow, inits: readonly Init[]): (readonly [Init, AllottedSequence])[] {
  const registered = {
    merchantId: row.merchant_id,
    merchantName: row.merchant_name,
    merchantAddress: row.merchant_address,
    deviceId: row.device_id,
    appName: row.app_name,
  };
  let trace = row.trace_no - inits.length;
  let invoice = row.invoice_no - inits.filter((init) => init.takes.invoiceNo).length;
  return inits.map((init) => {
    trace += 1;
    if (init.takes.invoiceNo) invoice += 1;
    const invoiceNo = init.takes.invoiceNo ? sixDigits(invoice) : "";
    // A Settlement reports the batch that the acquirer has settled already, before the open one.
    const late = init.takes.settlement === "SETTLEMENT" ? row.late_settlement : null;
    const { batchNo, batchId } = late ?? { batchNo: sixDigits(row.batch_no), batchId: row.batch_id };
    return [init, { ...registered, traceNo: sixDigits(trace), invoiceNo, batchNo, batchId }];
  });
}

/** The numbers for one command: only one that enters, closes or uploads a batch gets the batch number. */
export function sequenceFor({ takes }: Init, sequence: AllottedSequence): TerminalSequence {
  return takes.batch || takes.settlement !== null ? sequence : { ...sequence, batchNo: "" };
}

/** Counters run from 000001 to 999999 and start again, so numbers below 1 are those before the wrap-around. */
export function sixDigits(number: number): string {
  return String(number < 1 ? number + 999_999 : number).padStart(6, "0");
}

interface TerminalGroup {
  readonly first: Init;
  readonly all: Init[];
}

/** In key order: every writer locks terminals in this order, so that two batches never wait for each other. */
function groupByTerminal(inits: readonly Init[]): TerminalGroup[] {
  const groups = new Map<string, TerminalGroup>();
  for (const init of inits) {
    const group = groups.get(terminalOf(init));
    if (group === undefined) groups.set(terminalOf(init), { first: init, all: [init] });
    else group.all.push(init);
  }
  return [...groups.values()].sort((a, b) => (terminalOf(a.first) < terminalOf(b.first) ? -1 : 1));
}

export function terminalOf(init: Init): string {
  return `${init.partnerId} ${init.tid}`;
}

/** The key of the command itself. */
export function keyOf(init: Init): string {
  return `${init.partnerId} ${init.reqId}`;
}
