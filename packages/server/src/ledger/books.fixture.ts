import { expect } from "vitest";
import type { Partner } from "../partners/partner.ts";
import { postgresStatements } from "../store/transactions/statements.ts";
import type { BankBooks, LedgerBench, LedgerTill } from "./ledger.fixture.ts";
import { Statements } from "./statements.ts";

interface Row {
  readonly id: string;
  readonly command: string;
  readonly state: string;
  readonly original_id: string | null;
  readonly tid: string;
  readonly batch_no: string | null;
  readonly amount_text: string | null;
  readonly reversal_state: string | null;
  readonly facts: {
    readonly fields: Readonly<Record<string, string>>;
    readonly settlementList?: readonly { readonly reqId: string; readonly refNo: string }[];
    readonly currency?: string;
  };
  readonly ipns: number;
}

const charges = ["SALE", "PREAUTH", "PREAUTH_COMPLETE"];
const notified = [...charges, "VOID", "REFUND", "SETTLEMENT"];

/**
 * Compares everything that a partner's terminals have seen with the bank's books and with a naive count, once
 * everything is quiet and settled. Returns the number of successful settlements that were checked.
 */
export async function audit(bench: LedgerBench, partner: Partner, tills: readonly LedgerTill[]): Promise<number> {
  const rows = await bench.query<Row>(
    `SELECT t.id, t.command, t.state, t.original_id, t.tid, t.batch_no, t.amount_minor::text AS amount_text,
       t.reversal_state, t.facts,
       (SELECT count(*) FROM notifications n WHERE n.partner_id = t.partner_id AND n.transaction_id = t.id) AS ipns
     FROM transactions t WHERE t.partner_id = $1 AND NOT t.is_tombstone ORDER BY t.id`,
    [partner.id],
  );
  for (const row of rows) {
    expect(row.state, `${row.command} ${row.id} has ended`).not.toBe("INIT");
    expect(row.ipns, `IPNs of the ${row.command} ${row.id}`).toBe(notified.includes(row.command) ? 1 : 0);
    expect(row.facts.fields["status"]).toBe(row.state);
  }
  const ids = new Map(
    rows.flatMap(({ command, id, tid, facts }) =>
      command === "REVERSAL" ? [] : [[`${tid} ${facts.fields["traceNo"]}`, id] as const],
    ),
  );
  const books = (await bench.options.otherBank?.books((tid, traceNo) => ids.get(`${tid} ${traceNo}`))) ?? bench.bank;
  expectBooksToAgree(books, rows, tills);
  expectLegalNumbers(rows);
  expectOneOfEach(rows);
  expectReversedToBeGone(rows);
  expectRefundsWithinCharges(rows);
  await expectStatementsToAgree(bench, partner, rows);
  return tills.reduce((checked, till) => checked + expectExactSettlements(books, rows, till), 0);
}

/** Nothing is charged unless it was reported as a success, and everything reported as a success is charged. */
function expectBooksToAgree(books: BankBooks, rows: readonly Row[], tills: readonly LedgerTill[]): void {
  const byId = new Map(rows.map((row) => [row.id, row]));
  const tids = new Set(tills.map(({ tid }) => tid));
  for (const booking of books.all()) {
    if (!tids.has(booking.tid)) continue;
    const row = byId.get(booking.transactionId);
    if (row === undefined) throw new Error(`The bank booked ${booking.transactionId}, which the ledger does not hold.`);
    const charged = booking.state !== "declined" && booking.state !== "reversed";
    const stands = row.state === "SUCCESS" && row.reversal_state !== "done";
    expect(charged, `whether the ${row.command} ${row.id} is charged, told as ${row.state}`).toBe(stands);
  }
  for (const row of rows) {
    if (!charges.includes(row.command) || row.state !== "SUCCESS") continue;
    const followers = rows.filter(
      ({ original_id, state, command }) => original_id === row.id && state === "SUCCESS" && isHolding(command),
    );
    const [follower] = followers;
    const expected =
      row.reversal_state === "done"
        ? ["reversed"]
        : follower === undefined
          ? ["stands", "settled"]
          : follower.command === "VOID"
            ? ["voided"]
            : follower.reversal_state === "done"
              ? ["stands"]
              : ["completed"];
    expect(expected, `the bank's ${row.command} ${row.id}`).toContain(books.find(row.id)?.state);
  }
}

/** At most one of these commands succeeds on a transaction. */
function isHolding(command: string): boolean {
  return command === "VOID" || command === "PREAUTH_COMPLETE";
}

/** The refunds of a transaction never exceed its charge. */
function expectRefundsWithinCharges(rows: readonly Row[]): void {
  for (const { id, amount_text } of rows.filter(({ command }) => charges.includes(command))) {
    const refunds = rows.filter(({ command, state, original_id, reversal_state }) => {
      return command === "REFUND" && state === "SUCCESS" && original_id === id && reversal_state !== "done";
    });
    expect(sum(refunds), `Refunds of ${id}`).toBeLessThanOrEqual(BigInt(amount_text ?? 0));
  }
}

/** The statements of these days, together, move what stands in the ledger. */
async function expectStatementsToAgree(bench: LedgerBench, partner: Partner, rows: readonly Row[]): Promise<void> {
  const statements = new Statements(postgresStatements(bench.connections.homes), Date.now, 400);
  const nets = new Map<string, bigint>();
  const listed: string[] = [];
  const now = Date.now();
  for (const daysAgo of [1, 0]) {
    const date = new Date(now - daysAgo * 86_400_000).toISOString().slice(0, 10);
    const statement = statements.statement({ ...partner, settings: { timeZone: "UTC" } }, date);
    for await (const page of statement.pages) {
      for (const { kind, id } of page) if (kind === "transaction") listed.push(id);
    }
    for (const { currency, netAmount } of statement.totals()) {
      nets.set(currency, (nets.get(currency) ?? 0n) + BigInt(netAmount.replace(".", "")));
    }
  }
  expect(listed.sort()).toEqual(rows.flatMap(({ command, id }) => (notified.includes(command) ? [id] : [])).sort());
  const preAuths = new Set(rows.flatMap(({ command, id }) => (command === "PREAUTH" ? [id] : [])));
  const standing = rows.filter(({ state, reversal_state }) => state === "SUCCESS" && reversal_state !== "done");
  for (const [currency, net] of nets) {
    const counted = standing.filter(
      ({ facts, original_id }) => facts.fields["currency"] === currency && !preAuths.has(original_id ?? ""),
    );
    const completes = standing.filter(
      ({ facts, command }) => facts.fields["currency"] === currency && command === "PREAUTH_COMPLETE",
    );
    const of = (command: string) => sum(counted.filter((row) => row.command === command));
    expect(net, `the statements' ${currency}`).toBe(of("SALE") + sum(completes) - of("VOID") - of("REFUND"));
  }
}

function expectLegalNumbers(rows: readonly Row[]): void {
  const seen = new Set<string>();
  for (const { command, tid, facts } of rows) {
    const { traceNo = "", invoiceNo } = facts.fields;
    if (command === "REVERSAL") continue;
    expect(traceNo).toMatch(/^(?!000000)\d{6}$/);
    if (invoiceNo !== undefined) expect(invoiceNo).toMatch(/^(?!000000)\d{6}$/);
    expect(seen.has(`${tid} ${traceNo}`), `traceNo ${traceNo} of ${tid} is given once`).toBe(false);
    seen.add(`${tid} ${traceNo}`);
  }
}

function expectOneOfEach(rows: readonly Row[]): void {
  const successes = rows.filter(({ state }) => state === "SUCCESS");
  const followers = successes.filter(({ command }) => isHolding(command));
  const held = followers.map(({ original_id }) => original_id);
  expect(new Set(held).size, "at most one Void or Complete succeeds on each").toBe(held.length);
  const settlements = successes.filter(({ command }) => command === "SETTLEMENT");
  const batches = settlements.map(({ tid, facts }) => `${tid} ${facts.fields["batchNo"]}`);
  expect(new Set(batches).size, "each batch is settled once").toBe(batches.length);
}

/** A transaction reported as reversed is not charged, even if it arrived after its Reversal. */
function expectReversedToBeGone(rows: readonly Row[]): void {
  for (const { command, state, original_id, facts } of rows) {
    if (command !== "REVERSAL" || state !== "SUCCESS") continue;
    const reqId = facts.fields["originalReqId"];
    const named = rows.filter((row) => row.id === original_id || (reqId !== "" && row.facts.fields["reqId"] === reqId));
    const standing = named.filter((row) => row.state === "SUCCESS" && row.reversal_state !== "done");
    expect(standing, "what a successful REVERSAL named stands").toEqual([]);
  }
}

function expectExactSettlements(books: BankBooks, rows: readonly Row[], { tid, mid }: LedgerTill): number {
  const settlements = rows.filter((row) => row.tid === tid && row.command === "SETTLEMENT" && row.state === "SUCCESS");
  for (const { facts } of settlements) {
    const { fields, settlementList, currency } = facts;
    const inBatch = rows.filter(
      (row) => row.tid === tid && row.batch_no === fields["batchNo"] && row.state === "SUCCESS",
    );
    const sales = inBatch.filter(
      ({ command, reversal_state }) => charges.includes(command) && reversal_state !== "done",
    );
    const refunds = inBatch.filter(({ command, reversal_state }) => command === "REFUND" && reversal_state !== "done");
    const voids = inBatch.filter(({ command }) => command === "VOID");
    const voided = new Set(voids.map(({ original_id }) => original_id));
    const totals = { saleTotalMinor: sum(sales), voidTotalMinor: sum(voids) };
    const decimals = currency === "USD" ? 2 : 0;
    expect(minorOf(fields["saleTotalAmount"], decimals)).toBe(totals.saleTotalMinor);
    expect(minorOf(fields["voidTotalAmount"], decimals)).toBe(totals.voidTotalMinor);
    expect(fields).toMatchObject({
      saleQuantity: String(sales.length),
      voidQuantity: String(voids.length),
      quantity: String(sales.length - voids.length),
    });
    const standing = sales.filter(({ id }) => !voided.has(id)).map((sale) => sale.facts.fields);
    expect(settlementList).toEqual(standing.map(({ reqId, refId }) => ({ reqId, refNo: refId })));
    if (currency === undefined || fields["batchNo"] !== settlements.at(-1)?.facts.fields["batchNo"]) continue;
    expect(books.settledBatch(mid, tid, currency)).toEqual({
      batchNo: fields["batchNo"],
      currency,
      saleQuantity: sales.length,
      voidQuantity: voids.length,
      ...totals,
      refundQuantity: refunds.length,
      refundTotalMinor: sum(refunds),
    });
  }
  return settlements.length;
}

function sum(rows: readonly Row[]): bigint {
  return rows.reduce((total, { amount_text }) => total + BigInt(amount_text ?? 0), 0n);
}

/** The digits only: "12.50" of a currency with two decimals is 1250. */
function minorOf(amount = "", decimals = 0): bigint {
  const [whole = "", fraction = ""] = amount.split(".");
  expect(fraction).toHaveLength(decimals);
  return BigInt(whole + fraction);
}
