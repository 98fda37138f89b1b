import type { Pool, QueryConfig } from "pg";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import type { Refusal } from "../../commands/original.ts";
import type { TerminalState } from "../../commands/terminal.ts";
import { type LeaseId, newId } from "../../ids.ts";
import type { Begun, Init } from "../../ledger/store.ts";
import { createHistory, insertLease, insertPartner, sampleInit, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { PostgresTransactions } from "./transactions.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const init = (change: Partial<Init> = {}) => sampleInit(partnerId, leaseId, change);

function turn(begun: Begun) {
  if (begun.outcome !== "begun") throw new Error(begun.outcome);
  const { fields } = begun.facts;
  return { traceNo: fields["traceNo"], invoiceNo: fields["invoiceNo"], batchNo: fields["batchNo"] };
}

test("a terminal gives its numbers from 000001 one after the other, also to commands that come together", async () => {
  const begun = await Promise.all(Array.from({ length: 50 }, () => transactions.begin(init({ tid: "T-COUNT" }))));
  const traces = begun.map((one) => turn(one).traceNo).sort();
  expect(traces).toEqual(Array.from({ length: 50 }, (_, i) => String(i + 1).padStart(6, "0")));
  expect(new Set(begun.map((one) => turn(one).batchNo))).toEqual(new Set(["000001"]));
});

test("a command that takes no invoice number leaves the terminal's where it was", async () => {
  const logon = {
    command: "LOGON",
    takes: { traceNo: true, invoiceNo: false, batch: false, settlement: null },
  } as const;
  const [first, second, third] = [
    await transactions.begin(init({ tid: "T-INVOICE" })),
    await transactions.begin(init({ tid: "T-INVOICE", ...logon })),
    await transactions.begin(init({ tid: "T-INVOICE" })),
  ];
  expect(turn(first)).toMatchObject({ traceNo: "000001", invoiceNo: "000001" });
  expect(turn(second)).toMatchObject({ traceNo: "000002", invoiceNo: "" });
  expect(turn(third)).toMatchObject({ traceNo: "000003", invoiceNo: "000002" });
});

test("after 999999 a counter begins again with 000001, also in the middle of a batch", async () => {
  await transactions.begin(init({ tid: "T-WRAP" }));
  await connections.pool.query("UPDATE terminals SET trace_no = 999998, invoice_no = 999999 WHERE tid = 'T-WRAP'");
  const begun = await Promise.all(Array.from({ length: 3 }, () => transactions.begin(init({ tid: "T-WRAP" }))));
  expect(begun.map((one) => turn(one).traceNo).sort()).toEqual(["000001", "000002", "999999"]);
  expect(begun.map((one) => turn(one).invoiceNo).sort()).toEqual(["000001", "000002", "000003"]);
});

test("a command that the state refuses takes no number, also beside good ones in one batch", async () => {
  const refusal: Refusal = { code: "terminal_mid_mismatch", message: "No." };
  const byMid = (mid: string) => ({
    mid,
    refusal: (terminal: TerminalState | undefined) => (terminal && terminal.mid !== mid ? refusal : undefined),
  });
  const answers = await Promise.all([
    transactions.begin(init({ tid: "T-MID", ...byMid("M1") })),
    transactions.begin(init({ tid: "T-MID", ...byMid("M2") })),
  ]);
  expect(answers.map(({ outcome }) => outcome).sort()).toEqual(["begun", "refused"]);
  const { rows } = await connections.pool.query("SELECT trace_no FROM terminals WHERE tid = 'T-MID'");
  expect(rows).toEqual([{ trace_no: 1 }]);
});

test("a terminal that nobody registered is refused where only registered ones are", async () => {
  expect(await transactions.begin(init({ tid: "T-NEW", openTerminals: false }))).toEqual({
    outcome: "terminal_unknown",
  });
  const { rows } = await connections.pool.query("SELECT FROM terminals WHERE tid = 'T-NEW'");
  expect(rows).toHaveLength(0);
});

test("the same reqId again tells the first transaction, and whether the body was the same", async () => {
  const first = init({ tid: "T-AGAIN" });
  await transactions.begin(first);
  const { reqId, bodyHash } = first;
  expect(await transactions.begin(init({ tid: "T-AGAIN", reqId, bodyHash }))).toEqual({
    outcome: "repeated",
    sameBody: true,
    id: first.id,
  });
  expect(await transactions.begin(init({ tid: "T-AGAIN", reqId, bodyHash: Buffer.alloc(32) }))).toMatchObject({
    outcome: "repeated",
    sameBody: false,
  });
  const { rows } = await connections.pool.query("SELECT trace_no FROM terminals WHERE tid = 'T-AGAIN'");
  expect(rows).toEqual([{ trace_no: 1 }]);
});

test("one reqId sent many times at once, through two instances, begins once", async () => {
  const other = new PostgresTransactions(connections);
  const reqId = newId();
  const begun = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      (i % 2 === 0 ? transactions : other).begin(init({ tid: `T-RACE${i}`, reqId })),
    ),
  );
  expect(begun.filter((one) => one.outcome === "begun")).toHaveLength(1);
  expect(begun.filter((one) => one.outcome === "repeated")).toHaveLength(19);
});

test("a command whose lease is gone is taken over once; that of a lease that is there is not touched", async () => {
  const lost = sampleInit(partnerId, newId<"lease">(), { tid: "T-DEAD" });
  const living = init({ tid: "T-LIVE" });
  await transactions.begin(lost);
  await transactions.begin(living);
  const taken = await transactions.takeOver(leaseId, 100);
  expect(taken).toMatchObject([{ id: lost.id, runBy: leaseId }]);
  expect(await transactions.takeOver(leaseId, 100)).toEqual([]);
});

test("a transaction that another instance took over after the look is left to it", async () => {
  const lost = sampleInit(partnerId, newId<"lease">(), { tid: "T-TWICE" });
  await transactions.begin(lost);
  const { engine, pool } = connections;
  let other: LeaseId | undefined;
  const query = async (statement: QueryConfig) => {
    const result = await engine.query(statement);
    if (other === undefined) {
      // It also began after our read.
      other = await insertLease(pool);
      expect(await transactions.takeOver(other, 100)).toMatchObject([{ id: lost.id }]);
    }
    return result;
  };
  const slow = new PostgresTransactions({ homes: connections.homes, engine: { query } as unknown as Pool });
  expect(await slow.takeOver(leaseId, 100)).toEqual([]);
  expect(await transactions.find(partnerId, lost.id)).toMatchObject({ runBy: other });
});

test("a transaction is found by its reqId in any case of letters, and by nobody else's partner id", async () => {
  const one = init({ tid: "T-FIND" });
  await transactions.begin(one);
  expect((await transactions.findByReqId(partnerId, one.reqId.toUpperCase()))?.id).toBe(one.id);
  expect(await transactions.findByReqId(newId(), one.reqId)).toBeUndefined();
  expect(await transactions.find(newId(), one.id)).toBeUndefined();
});

test("a chain is read to its end, also of two that a switch reported as each other's originals", async () => {
  const completions = new PostgresCompletions(connections.homes);
  const [first, second] = [newId<"transaction">(), newId<"transaction">()];
  await completions.report(sampleReport(partnerId, { id: first, originalId: second, command: "VOID" }));
  await completions.report(sampleReport(partnerId, { id: second, originalId: first, command: "VOID" }));
  const found = await transactions.find(partnerId, first);
  if (found === undefined) throw new Error("It was reported.");
  expect((await transactions.chain(found)).map(({ id }) => id)).toEqual([first, second]);
});
