import type { PoolClient } from "pg";
import type { TerminalState } from "../commands/terminal.ts";
import type { PartnerId } from "../ids.ts";
import type { Init, TerminalTurn } from "../ledger/store.ts";

// Every command on a terminal takes this lock first and holds it to the end of its transaction, in key order.
// A currency that no command in the open batch stands for any more does not bind the next one.
const lock = {
  name: "lock_terminals",
  text: `
    SELECT t.partner_id, t.tid, t.mid, t.batch_closing, CASE WHEN t.batch_currency IS NOT NULL AND EXISTS (
        SELECT FROM transactions x WHERE x.partner_id = t.partner_id AND x.batch_id = t.batch_id AND x.state <> 'ERROR'
      ) THEN t.batch_currency END AS batch_currency
    FROM unnest($1::uuid[], $2::text[]) WITH ORDINALITY AS i (partner_id, tid, nth)
    JOIN terminals t ON t.partner_id = i.partner_id AND t.tid = i.tid
    ORDER BY i.nth
    FOR UPDATE OF t`,
};

// A terminal comes into being with its first command.
const take = {
  name: "take_turns",
  text: `
    INSERT INTO terminals AS t (partner_id, tid, mid, trace_no, invoice_no, batch_currency, batch_closing)
    SELECT * FROM unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::text[], $7::boolean[])
    ON CONFLICT (partner_id, tid) DO UPDATE SET
      trace_no = (t.trace_no + excluded.trace_no - 1) % 999999 + 1,
      invoice_no = CASE WHEN excluded.invoice_no = 0 THEN t.invoice_no
        ELSE (t.invoice_no + excluded.invoice_no - 1) % 999999 + 1 END,
      batch_currency = coalesce(excluded.batch_currency, t.batch_currency),
      batch_closing = t.batch_closing OR excluded.batch_closing
    RETURNING partner_id, tid, merchant_id, merchant_name, merchant_address, device_id, app_name,
      trace_no, invoice_no, batch_no, batch_id, t.xmax = 0 AS is_new`,
};

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
  readonly is_new: boolean;
}

/** What a terminal gave, and the batch that is open on it. */
export interface TurnTaken extends TerminalTurn {
  readonly batchId: string;
}

/** Locks the terminals of these commands, as far as they exist, and tells what stands. */
export async function lockTerminals(client: PoolClient, inits: readonly Init[]): Promise<Map<string, TerminalState>> {
  const groups = groupByTerminal(inits.filter(({ tid }) => tid !== ""));
  if (groups.length === 0) return new Map();
  const { rows } = await client.query<{
    partner_id: PartnerId;
    tid: string;
    mid: string;
    batch_closing: boolean;
    batch_currency: string | null;
  }>({ ...lock, values: [groups.map(({ first }) => first.partnerId), groups.map(({ first }) => first.tid)] });
  return new Map(
    rows.map((row) => [
      `${row.partner_id} ${row.tid}`,
      { mid: row.mid, batch: row.batch_closing ? "closing" : "open", batchCurrency: row.batch_currency },
    ]),
  );
}

/**
 * Gives each command its terminal's next numbers, within the open transaction of `client`. `known` are the terminals
 * that were locked and judged. A command without a turn lost a race: another instance made its terminal meanwhile,
 * which may be another merchant's or closing its batch by now. It is to be judged again, and nothing of this
 * transaction may stand.
 */
export async function allotTurns(
  client: PoolClient,
  inits: readonly Init[],
  known: ReadonlySet<string>,
): Promise<ReadonlyMap<Init, TurnTaken>> {
  const groups = groupByTerminal(inits.filter(({ takes }) => takes.traceNo));
  if (groups.length === 0) return new Map();
  const { rows } = await client.query<TerminalRow>({
    ...take,
    values: [
      groups.map(({ first }) => first.partnerId),
      groups.map(({ first }) => first.tid),
      groups.map(({ first }) => first.mid),
      groups.map(({ all }) => all.length),
      groups.map(({ all }) => all.filter((init) => init.takes.invoiceNo).length),
      groups.map(({ all }) => all.find((init) => init.takes.batch)?.currency ?? null),
      groups.map(({ all }) => all.some((init) => init.takes.settlement === "SETTLEMENT")),
    ],
  });
  const given = new Map(rows.map((row) => [`${row.partner_id} ${row.tid}`, row]));
  const turns = new Map<Init, TurnTaken>();
  for (const { first, all } of groups) {
    const row = given.get(terminalOf(first));
    if (row !== undefined && (row.is_new || known.has(terminalOf(first)))) deal(row, all, turns);
  }
  return turns;
}

/** Deals the numbers that a terminal gave to a group, the last of which the row now holds. */
function deal(row: TerminalRow, inits: readonly Init[], turns: Map<Init, TurnTaken>): void {
  let trace = row.trace_no - inits.length;
  let invoice = row.invoice_no - inits.filter((init) => init.takes.invoiceNo).length;
  for (const init of inits) {
    trace += 1;
    if (init.takes.invoiceNo) invoice += 1;
    turns.set(init, {
      traceNo: sixDigits(trace),
      invoiceNo: init.takes.invoiceNo ? sixDigits(invoice) : "",
      batchNo: sixDigits(row.batch_no),
      batchId: row.batch_id,
      merchantId: row.merchant_id,
      merchantName: row.merchant_name,
      merchantAddress: row.merchant_address,
      deviceId: row.device_id,
      appName: row.app_name,
    });
  }
}

/** Counters run 000001 to 999999 and begin again: numbers before 1 are those before the turn of the counter. */
function sixDigits(number: number): string {
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

function terminalOf(init: Init): string {
  return `${init.partnerId} ${init.tid}`;
}
