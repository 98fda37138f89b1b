import { DatabaseError, type Pool } from "pg";
import type { PartnerId } from "../../ids.ts";
import type { Begun, Init } from "../../ledger/store.ts";
import { textArray } from "../database/arrays.ts";
import { searchable } from "../notifications/searchable.ts";
import type { Registrations } from "../terminals/registrations.ts";
import {
  assignNumbers,
  groupByTerminal,
  keyOf,
  sequenceFor,
  type TerminalGroup,
  type TerminalRow,
  terminalOf,
} from "../terminals/sequences.ts";

/**
 * INITs that hold nothing but their terminal, in one statement that is its own transaction: one round trip in place of
 * five. It begins what is as it was taken to be: the reqId new, the terminal under that mid, of that acquirer, with
 * what is registered for it, its batch open and in that currency. Of a terminal where something is otherwise it begins
 * nothing and changes nothing, and the way by steps tells what forbids it.
 *
 * All of it sees one snapshot, which is older than the locks that it waits for. Therefore:
 * - What decides about a terminal stands in its ON CONFLICT: that alone locks the row first and then reads its newest
 *   version, also one that came after the snapshot. So do the numbers. A settlement that closes the batch meanwhile is
 *   either waited for and seen, or waits for this, and finds its INITs.
 * - `used` reads the snapshot. A reqId that another instance wrote since, or remembers as reversed before it arrived,
 *   breaks the unique index, and the whole statement is undone: no number is used up.
 * - Whether a terminal is there reads the snapshot too: one that is too new, or comes with this command and is to be
 *   claimed, is begun by steps.
 * - Terminals are locked in key order, and all of them before the first INIT is written: `turns` needs them all. So a
 *   wait for another's reqId never holds up a terminal that the other one still needs.
 *
 * The numbers are put into the facts here, at the place of empty texts. No value can hold such a place: inside of one,
 * quotes are escaped. Turns are looked up in one object: the join would look at each turn for each INIT, as these
 * connections know no hash join.
 */
const beginWholeStatement = {
  name: "begin_whole",
  text: `
    WITH i AS MATERIALIZED (
      SELECT *, partner_id || ' ' || tid AS terminal
      FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::bytea[], $6::text[], $7::text[], $8::bigint[],
        $9::text[], $10::text[], $11::text[], $12::uuid[], $13::boolean[], $14::integer[],
        $15::integer[], $28::bytea[], $29::text[])
        AS i (partner_id, id, command, req_id, body_hash, callback_url, tid, amount_minor, currency, facts,
          merchant_trans_id, lease_id, takes_batch, traces_after, invoices_after, card, acquirer)),
    used AS MATERIALIZED (
      SELECT coalesce(array_agg(i.terminal), '{}') AS terminals FROM i CROSS JOIN LATERAL (
        SELECT FROM transactions t
        WHERE (t.partner_id = i.partner_id) IS TRUE AND t.req_id = i.req_id AND t.origin = 'command' LIMIT 1) AS t),
    taken AS (
      INSERT INTO terminals AS t (partner_id, tid, mid, trace_no, invoice_no, batch_currency, merchant_id,
        merchant_name, merchant_address, device_id, app_name, acquirer)
      SELECT g.partner_id, g.tid, g.mid, g.traces, g.invoices, g.currency, g.merchant_id, g.merchant_name,
        g.merchant_address, g.device_id, g.app_name, g.acquirer
      FROM unnest($16::uuid[], $17::text[], $18::text[], $19::integer[], $20::integer[], $21::text[], $22::text[],
        $23::text[], $24::text[], $25::text[], $26::text[], $27::boolean[], $30::text[]) WITH ORDINALITY
        AS g (partner_id, tid, mid, traces, invoices, currency, merchant_id, merchant_name, merchant_address,
          device_id, app_name, opens, acquirer, nth)
      CROSS JOIN used
      WHERE g.partner_id || ' ' || g.tid <> ALL (used.terminals)
        AND ((g.opens AND NOT EXISTS (
            SELECT FROM terminal_claims c
            WHERE (c.acquirer = '') IS TRUE AND c.mid = g.mid AND c.tid = g.tid AND c.partner_id <> g.partner_id))
          OR (SELECT true FROM terminals k WHERE k.partner_id = g.partner_id AND k.tid = g.tid))
      ORDER BY g.nth
      ON CONFLICT (partner_id, tid) DO UPDATE SET
        trace_no = (t.trace_no + excluded.trace_no - 1) % 999999 + 1,
        invoice_no = CASE WHEN excluded.invoice_no = 0 THEN t.invoice_no
          ELSE (t.invoice_no + excluded.invoice_no - 1) % 999999 + 1 END,
        batch_currency = coalesce(excluded.batch_currency, t.batch_currency)
      WHERE NOT t.batch_closing AND t.mid = excluded.mid
        AND (t.batch_currency IS NULL OR coalesce(excluded.batch_currency, t.batch_currency) = t.batch_currency)
        AND t.merchant_id = excluded.merchant_id AND t.merchant_name = excluded.merchant_name
        AND t.merchant_address = excluded.merchant_address AND t.device_id = excluded.device_id
        AND t.app_name = excluded.app_name AND t.acquirer = excluded.acquirer
      RETURNING partner_id, tid, trace_no, invoice_no, batch_no, batch_id),
    turns AS MATERIALIZED (
      SELECT jsonb_object_agg(partner_id || ' ' || tid, jsonb_build_array(trace_no, invoice_no, batch_no, batch_id))
        AS by_terminal FROM taken),
    begun AS (
      INSERT INTO transactions (partner_id, id, origin, command, state, req_id, body_hash, chain_id, callback_url, tid,
        batch_no, batch_id, amount_minor, currency, facts, merchant_trans_id, lease_id, acquirer)
      SELECT partner_id, id, 'command', command, 'INIT', req_id, body_hash, id, callback_url, tid,
        CASE WHEN takes_batch THEN n.batch_no END, CASE WHEN takes_batch THEN n.batch_id END,
        amount_minor, currency,
        replace(replace(replace(facts,
          '"traceNo":""', '"traceNo":"' || n.trace_no || '"'),
          '"invoiceNo":""', '"invoiceNo":"' || n.invoice_no || '"'),
          '"batchNo":""', '"batchNo":"' || CASE WHEN takes_batch THEN n.batch_no ELSE '' END || '"')::json,
        merchant_trans_id, lease_id, acquirer
      FROM i CROSS JOIN turns
      CROSS JOIN LATERAL (SELECT turns.by_terminal -> i.terminal AS turn OFFSET 0) AS given
      CROSS JOIN LATERAL (
        SELECT lpad((((turn ->> 0)::integer - traces_after + 999998) % 999999 + 1)::text, 6, '0') AS trace_no,
          CASE WHEN invoices_after IS NULL THEN ''
            ELSE lpad((((turn ->> 1)::integer - invoices_after + 999998) % 999999 + 1)::text, 6, '0') END AS invoice_no,
          lpad(turn ->> 2, 6, '0') AS batch_no, (turn ->> 3)::uuid AS batch_id
        OFFSET 0) AS n
      WHERE turn IS NOT NULL),
    kept AS (
      INSERT INTO cards (partner_id, chain_id, sealed)
      SELECT partner_id, id, card FROM i CROSS JOIN turns
      WHERE card IS NOT NULL AND turns.by_terminal -> i.terminal IS NOT NULL)
    SELECT partner_id, tid, trace_no, invoice_no, batch_no, batch_id, now() AS at FROM taken`,
};

/** Whether a command may be begun whole: it holds no original and closes no batch. */
export function allowsOneStatement({ originalId, tid, takes }: Init): boolean {
  return originalId === null && tid !== "" && takes.traceNo && takes.settlement === null;
}

/** Begins those that stand as they are taken to, and answers for them; the others are to be begun by steps. */
export async function beginInOneStatement(
  engine: Pool,
  inits: readonly Init[],
  registrations: Registrations,
): Promise<ReadonlyMap<string, Begun>> {
  const groups = groupByTerminal(inits).filter(hasOneMerchantAndCurrency);
  if (groups.length === 0) return new Map();
  try {
    const { rows } = await engine.query<Taken>({ ...beginWholeStatement, values: columns(groups, registrations) });
    return answers(groups, rows, registrations);
  } catch (error) {
    // Another instance took one of the reqIds since. Nothing of this stands.
    if (error instanceof DatabaseError && error.code === "23505") return new Map();
    throw error;
  }
}

/** What the statement takes for granted, and looks at again: under it no command of the group is forbidden. */
function hasOneMerchantAndCurrency({ first: { mid, acquirer }, all }: TerminalGroup): boolean {
  const terminal = { mid, acquirer, batch: "open", batchCurrency: currencyOf(all) } as const;
  return all.every(
    (init) => init.mid === mid && init.acquirer === acquirer && init.refusal(terminal, undefined) === undefined,
  );
}

function currencyOf(inits: readonly Init[]): string | null {
  return inits.find(({ takes }) => takes.batch)?.currency ?? null;
}

type Taken = Pick<TerminalRow, "partner_id" | "tid" | "trace_no" | "invoice_no" | "batch_no" | "batch_id"> & {
  readonly partner_id: PartnerId;
  readonly at: Date;
};

const noNumbers = { traceNo: "", invoiceNo: "", batchNo: "" };

function columns(groups: readonly TerminalGroup[], registrations: Registrations): unknown[] {
  const rows = groups.flatMap(({ first, all }) => {
    const registered = registrations.of(terminalOf(first));
    let traces = all.length;
    let invoices = all.filter(({ takes }) => takes.invoiceNo).length;
    return all.map((init) => {
      traces -= 1;
      if (init.takes.invoiceNo) invoices -= 1;
      const facts = init.facts({ ...registered, ...noNumbers });
      return { init, facts, tracesAfter: traces, invoicesAfter: init.takes.invoiceNo ? invoices : null };
    });
  });
  const registered = groups.map(({ first }) => registrations.of(terminalOf(first)));
  return [
    rows.map(({ init }) => init.partnerId),
    rows.map(({ init }) => init.id),
    rows.map(({ init }) => init.command),
    rows.map(({ init }) => init.reqId),
    rows.map(({ init }) => init.bodyHash),
    rows.map(({ init }) => init.callBackUrl),
    rows.map(({ init }) => init.tid),
    rows.map(({ init }) => init.amountMinor),
    rows.map(({ init }) => init.currency),
    textArray(rows.map(({ facts }) => JSON.stringify(facts))),
    rows.map(({ facts }) => searchable(facts.fields["merchantTransId"])),
    rows.map(({ init }) => init.leaseId),
    rows.map(({ init }) => init.takes.batch),
    rows.map(({ tracesAfter }) => tracesAfter),
    rows.map(({ invoicesAfter }) => invoicesAfter),
    groups.map(({ first }) => first.partnerId),
    groups.map(({ first }) => first.tid),
    groups.map(({ first }) => first.mid),
    groups.map(({ all }) => all.length),
    groups.map(({ all }) => all.filter(({ takes }) => takes.invoiceNo).length),
    groups.map(({ all }) => currencyOf(all)),
    registered.map(({ merchantId }) => merchantId),
    registered.map(({ merchantName }) => merchantName),
    registered.map(({ merchantAddress }) => merchantAddress),
    registered.map(({ deviceId }) => deviceId),
    registered.map(({ appName }) => appName),
    // One that is to be claimed for its partner is begun by steps.
    groups.map(({ first }) => first.openTerminals && first.sharesTerminals && first.acquirer === ""),
    rows.map(({ init }) => init.sealedCard),
    rows.map(({ init }) => init.acquirer),
    groups.map(({ first }) => first.acquirer),
  ];
}

function answers(
  groups: readonly TerminalGroup[],
  rows: readonly Taken[],
  registrations: Registrations,
): ReadonlyMap<string, Begun> {
  const taken = new Map(rows.map((row) => [`${row.partner_id} ${row.tid}`, row]));
  const begun = new Map<string, Begun>();
  for (const { first, all } of groups) {
    const row = taken.get(terminalOf(first));
    if (row === undefined) continue;
    const createdAtMs = row.at.getTime();
    for (const [init, turn] of assignNumbers(row, registrations.of(terminalOf(first)), all)) {
      begun.set(keyOf(init), { outcome: "begun", facts: init.facts(sequenceFor(init, turn)), createdAtMs });
    }
  }
  return begun;
}
