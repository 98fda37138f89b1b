import type { PoolClient } from "pg";
import type { PartnerId } from "../ids.ts";
import type { Init, TerminalTurn } from "../ledger/store.ts";

// The row lock on the terminal is taken here and held to the end of the transaction: numbers are given one after the other.
// A terminal under another mid, or one that is not known where only registered ones are, gives no row back.
const takeTurns = {
  name: "take_turns",
  text: `
    INSERT INTO terminals AS t (partner_id, tid, mid, trace_no, invoice_no)
    SELECT i.partner_id, i.tid, i.mid, i.traces, i.invoices
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::integer[], $5::integer[], $6::boolean[])
      AS i (partner_id, tid, mid, traces, invoices, open)
    WHERE i.open OR EXISTS (SELECT FROM terminals k WHERE k.partner_id = i.partner_id AND k.tid = i.tid)
    ON CONFLICT (partner_id, tid) DO UPDATE SET
      trace_no = (t.trace_no + excluded.trace_no - 1) % 999999 + 1,
      invoice_no = CASE WHEN excluded.invoice_no = 0 THEN t.invoice_no
        ELSE (t.invoice_no + excluded.invoice_no - 1) % 999999 + 1 END
      WHERE t.mid = excluded.mid
    RETURNING partner_id, tid, mid, merchant_id, merchant_name, merchant_address, device_id, app_name,
      trace_no, invoice_no, batch_no`,
};

const knownTerminals = {
  name: "known_terminals",
  text: `
    SELECT t.partner_id, t.tid FROM unnest($1::uuid[], $2::text[]) AS i (partner_id, tid)
    JOIN terminals t ON t.partner_id = i.partner_id AND t.tid = i.tid`,
};

interface TerminalRow {
  readonly partner_id: PartnerId;
  readonly tid: string;
  readonly mid: string;
  readonly merchant_id: string;
  readonly merchant_name: string;
  readonly merchant_address: string;
  readonly device_id: string;
  readonly app_name: string;
  readonly trace_no: number;
  readonly invoice_no: number;
  readonly batch_no: number;
}

interface Group {
  readonly mid: string;
  readonly inits: Init[];
}

export type Turn = TerminalTurn | "mid_mismatch" | "terminal_unknown";

/** Gives each command its terminal's next numbers, within the open transaction of `client`. */
export async function allotTurns(client: PoolClient, inits: readonly Init[]): Promise<ReadonlyMap<Init, Turn>> {
  const turns = new Map<Init, Turn>();
  let left = inits;
  while (left.length > 0) {
    // One statement changes a row once: commands that name another mid for the same terminal wait for a further round.
    const groups = new Map<string, Group>();
    const others: Init[] = [];
    for (const init of left) {
      const group = groups.get(terminalOf(init));
      if (group === undefined) groups.set(terminalOf(init), { mid: init.mid, inits: [init] });
      else if (group.mid === init.mid) group.inits.push(init);
      else others.push(init);
    }
    await allot(client, [...groups.values()], turns);
    left = others;
  }
  return turns;
}

async function allot(client: PoolClient, groups: readonly Group[], turns: Map<Init, Turn>): Promise<void> {
  // Terminals are locked in key order, so that two batches never wait for each other.
  const ordered = groups
    .map(({ mid, inits }) => ({ mid, inits, first: firstOf(inits) }))
    .sort((a, b) => (terminalOf(a.first) < terminalOf(b.first) ? -1 : 1));
  const { rows } = await client.query<TerminalRow>({
    ...takeTurns,
    values: [
      ordered.map(({ first }) => first.partnerId),
      ordered.map(({ first }) => first.tid),
      ordered.map(({ mid }) => mid),
      ordered.map(({ inits }) => inits.length),
      ordered.map(({ inits }) => inits.filter((init) => init.takes.invoiceNo).length),
      ordered.map(({ first }) => first.openTerminals),
    ],
  });
  const given = new Map(rows.map((row) => [`${row.partner_id} ${row.tid}`, row]));
  const refused: Init[] = [];
  for (const { inits, first } of ordered) {
    const row = given.get(terminalOf(first));
    if (row === undefined) refused.push(...inits);
    else deal(row, inits, turns);
  }
  if (refused.length > 0) await explain(client, refused, turns);
}

/** Deals the numbers that a terminal gave to a group, the last of which the row now holds. */
function deal(row: TerminalRow, inits: readonly Init[], turns: Map<Init, Turn>): void {
  let trace = row.trace_no - inits.length;
  let invoice = row.invoice_no - inits.filter((init) => init.takes.invoiceNo).length;
  for (const init of inits) {
    trace += 1;
    if (init.takes.invoiceNo) invoice += 1;
    turns.set(init, {
      traceNo: sixDigits(trace),
      invoiceNo: init.takes.invoiceNo ? sixDigits(invoice) : "",
      batchNo: sixDigits(row.batch_no),
      merchantId: row.merchant_id,
      merchantName: row.merchant_name,
      merchantAddress: row.merchant_address,
      deviceId: row.device_id,
      appName: row.app_name,
    });
  }
}

async function explain(client: PoolClient, refused: readonly Init[], turns: Map<Init, Turn>): Promise<void> {
  const { rows } = await client.query<{ partner_id: PartnerId; tid: string }>({
    ...knownTerminals,
    values: [refused.map((init) => init.partnerId), refused.map((init) => init.tid)],
  });
  const known = new Set(rows.map((row) => `${row.partner_id} ${row.tid}`));
  for (const init of refused) turns.set(init, known.has(terminalOf(init)) ? "mid_mismatch" : "terminal_unknown");
}

/** Counters run 000001 to 999999 and begin again: numbers before 1 are those before the turn of the counter. */
function sixDigits(number: number): string {
  return String(number < 1 ? number + 999_999 : number).padStart(6, "0");
}

function terminalOf(init: Init): string {
  return `${init.partnerId} ${init.tid}`;
}

function firstOf(inits: readonly Init[]): Init {
  const [first] = inits;
  if (first === undefined) throw new Error("A group of commands is never empty.");
  return first;
}
