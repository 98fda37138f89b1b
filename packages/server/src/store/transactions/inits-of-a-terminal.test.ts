import { describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { terminalRefusal } from "../../commands/terminal.ts";
import { newId } from "../../ids.ts";
import type { Begun, Init } from "../../ledger/store.ts";
import { createHistory, insertLease, insertPartner, sampleFacts, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "./transactions.ts";

const mid = "M00000000000001";
const noInvoice = { traceNo: true, invoiceNo: false, batch: false, settlement: null } as const;
const preAuth = { ...noInvoice, invoiceNo: true };
const settles = { ...noInvoice, settlement: "SETTLEMENT" } as const;

const connections = await openTestDatabase();
await createHistory(connections.pool);
const store = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const newTid = () => `T${newId().slice(-7)}`;

/** As the ledger makes it: judged by its terminal, with every field that a terminal gives. */
function init(tid: string, change: Partial<Init> = {}): Init {
  const { takes, currency } = sampleInit(partnerId, leaseId, change);
  const entersBatchWith = takes.batch ? currency : null;
  return sampleInit(partnerId, leaseId, {
    tid,
    refusal: (terminal) => terminal && terminalRefusal(terminal, { mid, entersBatchWith, money: takes.invoiceNo }),
    facts: ({ traceNo, invoiceNo, batchNo, merchantName, deviceId }) =>
      sampleFacts({ traceNo, invoiceNo, batchNo, merchantName, deviceId, extraData: '{"traceNo":"","batchNo":""}' }),
    ...change,
  });
}

async function row(table: "terminals" | "transactions", key: string): Promise<Record<string, unknown>> {
  const by = table === "terminals" ? "tid" : "id";
  const { rows } = await connections.pool.query(`SELECT * FROM ${table} WHERE ${by} = $1`, [key]);
  return rows[0] ?? {};
}

function numbersOf(begun: Begun): (string | undefined)[] {
  if (begun.outcome !== "begun") throw new Error(begun.outcome);
  const { traceNo, invoiceNo, batchNo } = begun.facts.fields;
  return [traceNo, invoiceNo, batchNo];
}

/** A change by another connection, which holds the terminal's lock, while a command begins. */
async function whileLocked(tid: string, change: string, values: unknown[], begin: () => Promise<Begun>) {
  const other = await connections.pool.connect();
  await other.query("BEGIN");
  await other.query("UPDATE terminals SET trace_no = trace_no + 1 WHERE partner_id = $1 AND tid = $2", [
    partnerId,
    tid,
  ]);
  const begun = begin();
  try {
    await lockWaits(connections.pool);
    await other.query(change, values);
    await other.query("COMMIT");
  } finally {
    other.release(true);
  }
  return begun;
}

test("commands of one terminal that begin together get its next numbers, and what they take alone", async () => {
  const tid = newTid();
  const takes = [undefined, preAuth, noInvoice, undefined].map((taken) => init(tid, taken && { takes: taken }));
  const begun = await Promise.all(takes.map((one) => store.begin(one)));
  const numbers = begun.map(numbersOf);
  expect(numbers.map(([traceNo]) => traceNo).sort()).toEqual(["000001", "000002", "000003", "000004"]);
  expect(numbers.map(([, invoiceNo]) => invoiceNo).sort()).toEqual(["", "000001", "000002", "000003"]);
  expect(numbers.map(([, , batchNo]) => batchNo)).toEqual(["000001", "", "", "000001"]);
  expect(await row("terminals", tid)).toMatchObject({ trace_no: 4, invoice_no: 3, batch_currency: "VND" });
});

test("the row holds the very facts that were answered, and no part of a value is taken for a number", async () => {
  const tid = newTid();
  for (const one of [init(tid), init(tid, { takes: preAuth }), init(tid, { takes: noInvoice })]) {
    const begun = await store.begin(one);
    const { facts, batch_no, batch_id, state, created_at } = await row("transactions", one.id);
    const stored = created_at as Date;
    expect(begun).toEqual({ outcome: "begun", facts, createdAtMs: stored.getTime() });
    expect(facts).toMatchObject({ fields: { extraData: '{"traceNo":"","batchNo":""}' } });
    const { batch_id: open } = await row("terminals", tid);
    expect({ state, batch_no, batch_id }).toEqual({
      state: "INIT",
      ...(one.takes.batch ? { batch_no: "000001", batch_id: open } : { batch_no: null, batch_id: null }),
    });
  }
});

test("counters run to 999999 and begin again with 000001, also amid what begins together", async () => {
  const tid = newTid();
  await connections.pool.query(
    `INSERT INTO terminals (partner_id, tid, mid, trace_no, invoice_no, batch_no)
     VALUES ($1, $2, $3, 999997, 999998, 42)`,
    [partnerId, tid, mid],
  );
  const begun = await Promise.all([1, 2, 3, 4].map(() => store.begin(init(tid))));
  expect(begun.map(numbersOf).sort()).toEqual([
    ["000001", "000002", "000042"],
    ["000002", "000003", "000042"],
    ["999998", "999999", "000042"],
    ["999999", "000001", "000042"],
  ]);
  expect(await row("terminals", tid)).toMatchObject({ trace_no: 2, invoice_no: 3 });
  for (const { facts } of (await connections.pool.query("SELECT facts FROM transactions WHERE tid = $1", [tid])).rows) {
    const { traceNo, invoiceNo } = facts.fields;
    expect(begun.map(numbersOf)).toContainEqual([traceNo, invoiceNo, "000042"]);
  }
});

test("a Settlement has the batch that the acquirer has settled already, and a Sale the open one", async () => {
  const tid = newTid();
  await store.begin(init(tid));
  const late = { settlementId: newId(), batchId: newId(), batchNo: "000009", answer: {}, state: "closed" };
  await connections.pool.query("UPDATE terminals SET late_settlement = $2 WHERE tid = $1", [tid, late]);
  const { batch_id: open } = await row("terminals", tid);
  const [sale, settlement] = [init(tid), init(tid, { command: "SETTLEMENT", takes: settles })];
  expect(numbersOf(await store.begin(sale))).toEqual(["000002", "000002", "000001"]);
  expect(numbersOf(await store.begin(settlement))).toEqual(["000003", "", "000009"]);
  expect(await row("transactions", sale.id)).toMatchObject({ batch_id: open });
});

test("a reqId used before begins nothing and uses no number up, nor does one reversed before it arrived", async () => {
  const [tid, other] = [newTid(), newTid()];
  const first = init(tid);
  await store.begin(first);
  // Another partner's is its own, whichever is found first.
  const stranger = { partnerId: await insertPartner(connections.pool), tid: newTid(), reqId: first.reqId };
  const others = init(stranger.tid, stranger);
  expect(await store.begin(others)).toMatchObject({ outcome: "begun" });
  expect(await store.begin(init(stranger.tid, stranger))).toMatchObject({ outcome: "repeated", id: others.id });
  const reversed = newId();
  await store.reverseBeforeArrival(partnerId, reversed);
  const { reqId, bodyHash } = first;
  const again = await Promise.all([
    store.begin(init(other, { reqId, bodyHash })),
    store.begin(init(other, { reqId: reversed })),
  ]);
  expect(again).toEqual([
    { outcome: "repeated", sameBody: true, id: first.id },
    { outcome: "reversed_before_arrival" },
  ]);
  expect(await store.begin(init(other, { reqId, bodyHash: Buffer.alloc(32) }))).toMatchObject({
    outcome: "repeated",
    sameBody: false,
  });
  expect(await row("terminals", other)).toEqual({});
  // Beside such a one, another of the same terminal begins all the same.
  const [repeated, fresh] = await Promise.all([store.begin(init(tid, { reqId, bodyHash })), store.begin(init(tid))]);
  expect([repeated.outcome, numbersOf(fresh)[0]]).toEqual(["repeated", "000002"]);
});

test("of a partner that registers its terminals, an unknown one is refused and does not come into being", async () => {
  const tid = newTid();
  expect(await store.begin(init(tid, { openTerminals: false }))).toEqual({ outcome: "terminal_unknown" });
  expect(await row("terminals", tid)).toEqual({});
  await connections.pool.query("INSERT INTO terminals (partner_id, tid, mid) VALUES ($1, $2, $3)", [
    partnerId,
    tid,
    mid,
  ]);
  expect(numbersOf(await store.begin(init(tid, { openTerminals: false })))).toEqual(["000001", "000001", "000001"]);
});

test("a first command that is refused leaves its terminal to the partner whose next one is not", async () => {
  const [tid, other] = [newTid(), await insertPartner(connections.pool)];
  const refused = init(tid, { refusal: () => ({ code: "not_voidable", message: "It is no Sale." }) });
  expect(await store.begin(refused)).toMatchObject({ outcome: "refused" });
  const theirs = sampleInit(other, leaseId, { tid, sharesTerminals: false });
  expect(await store.begin(theirs)).toMatchObject({ outcome: "begun" });
});

test("a command waits for no other partner's terminal of the same tid", async () => {
  const [tid, other] = [newTid(), await insertPartner(connections.pool)];
  await connections.pool.query("INSERT INTO terminals (partner_id, tid, mid) VALUES ($1, $2, 'M2')", [other, tid]);
  const theirs = await connections.pool.connect();
  await theirs.query("BEGIN");
  await theirs.query("SELECT FROM terminals WHERE tid = $1 FOR UPDATE", [tid]);
  try {
    expect(numbersOf(await store.begin(init(tid)))).toEqual(["000001", "000001", "000001"]);
  } finally {
    theirs.release(true);
  }
});

describe("a change by another instance between the look and the lock", () => {
  test("a batch that it is closing takes nothing", async () => {
    const tid = newTid();
    await store.begin(init(tid));
    const close = "UPDATE terminals SET batch_closing = true WHERE tid = $1";
    expect(await whileLocked(tid, close, [tid], () => store.begin(init(tid)))).toMatchObject({
      outcome: "refused",
      refusal: { code: "settlement_in_progress" },
    });
    expect(await row("terminals", tid)).toMatchObject({ trace_no: 2, invoice_no: 1 });
    expect(numbersOf(await store.begin(init(tid, { takes: noInvoice })))).toEqual(["000003", "", ""]);
    expect(await row("terminals", tid)).toMatchObject({ batch_closing: true, batch_currency: "VND" });
  });

  test("the batch that it opened is the one that is entered", async () => {
    const tid = newTid();
    await store.begin(init(tid));
    const settled = "UPDATE terminals SET batch_no = 2, batch_id = $2 WHERE tid = $1";
    const batchId = newId();
    const one = init(tid);
    expect(numbersOf(await whileLocked(tid, settled, [tid, batchId], () => store.begin(one)))).toEqual([
      "000003",
      "000002",
      "000002",
    ]);
    expect(await row("transactions", one.id)).toMatchObject({ batch_id: batchId, batch_no: "000002" });
  });

  test("a change of the registered terminal is in the facts", async () => {
    const tid = newTid();
    await store.begin(init(tid));
    for (const name of ["Cafe", "Bar", ""]) {
      const register = "UPDATE terminals SET merchant_name = $2, device_id = 'SN-1' WHERE tid = $1";
      const begun = await whileLocked(tid, register, [tid, name], () => store.begin(init(tid)));
      expect(begun).toMatchObject({ facts: { fields: { merchantName: name, deviceId: "SN-1" } } });
      expect(await store.begin(init(tid))).toMatchObject({ facts: { fields: { merchantName: name } } });
    }
  });

  test.each([
    ["a Sale", {}],
    ["a PreAuth-Complete", { originalId: newId<"transaction">() }],
  ])("the currency of what it began binds the batch, for %s", async (_, change: Partial<Init>) => {
    const tid = newTid();
    await store.begin(init(tid, { takes: preAuth }));
    const begins = `
      WITH bound AS (
        UPDATE terminals SET batch_currency = 'VND' WHERE tid = $1 RETURNING partner_id, tid, batch_id)
      INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, tid, batch_id,
        currency)
      SELECT partner_id, $2::uuid, 'command', 'SALE', 'INIT', $2::text, $2::uuid, '{"fields":{}}', tid, batch_id, 'VND'
      FROM bound`;
    const dollars = () => store.begin(init(tid, { currency: "USD", ...change }));
    const id = newId();
    expect(await whileLocked(tid, begins, [tid, id], dollars)).toMatchObject({
      outcome: "refused",
      refusal: { code: "batch_currency" },
    });
    const reverses = `INSERT INTO reversals (partner_id, transaction_id, tid, state) VALUES ($1, $2, $3, $4)
      ON CONFLICT (partner_id, transaction_id) DO UPDATE SET state = excluded.state`;
    for (const [state, reversal, outcome] of [
      ["SUCCESS", undefined, "refused"],
      ["ERROR", "PENDING", "refused"],
      ["ERROR", "PARKED", "refused"],
      ["ERROR", "DONE", "begun"],
    ] as const) {
      await connections.pool.query("UPDATE transactions SET state = $2 WHERE id = $1", [id, state]);
      if (reversal !== undefined) await connections.pool.query(reverses, [partnerId, id, tid, reversal]);
      expect((await dollars()).outcome).toBe(outcome);
    }
    expect(await store.begin(init(tid))).toMatchObject({ outcome: "refused", refusal: { code: "batch_currency" } });
    // The dollars failed, and it is in doubt again.
    await connections.pool.query("UPDATE transactions SET state = 'ERROR' WHERE tid = $1", [tid]);
    await connections.pool.query(reverses, [partnerId, id, tid, "PARKED"]);
    expect(await store.begin(init(tid))).toMatchObject({ outcome: "begun" });
  });

  test("a reqId that it took is a repeat, and no number is used up", async () => {
    const tid = newTid();
    await store.begin(init(tid));
    const one = init(tid);
    const takes = `
      INSERT INTO transactions (partner_id, id, origin, command, state, req_id, body_hash, chain_id, facts)
      VALUES ($1, $2, 'command', 'SALE', 'INIT', $3, $4, $2, '{"fields":{}}')`;
    const id = newId();
    const values = [partnerId, id, one.reqId, one.bodyHash];
    expect(await whileLocked(tid, takes, values, () => store.begin(one))).toEqual({
      outcome: "repeated",
      sameBody: true,
      id,
    });
    expect(await row("terminals", tid)).toMatchObject({ trace_no: 2, invoice_no: 1 });
  });
});
