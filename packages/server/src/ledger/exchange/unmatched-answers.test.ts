import { Writable } from "node:stream";
import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { noAcquirer, type UnmatchedAnswer } from "../../acquirer/acquirer.ts";
import type { PartnerId, TransactionId } from "../../ids.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { createLog } from "../../telemetry/log.ts";
import type { Transaction } from "../store.ts";
import { UnmatchedAnswers } from "./unmatched-answers.ts";

const sale = { tid: "T0000001", mid: "M00000000000001", traceNo: "000042", transDateTime: "2026-01-31T09:30:01.000Z" };
const atMs = Date.parse(sale.transDateTime);

/** The calls and log lines for this answer, with these transactions in doubt on the terminal. */
async function take(
  inDoubt: readonly (typeof sale)[],
  change: Partial<UnmatchedAnswer> = {},
  fails = false,
  acquirer = "",
  ends?: Pick<Transaction, "state" | "reversal">,
  stops = false,
) {
  const told: string[] = [];
  const events: Pick<NewEvent, "kind" | "detail">[] = [];
  const logged: string[] = [];
  const transactions = inDoubt.map((fields, at) => {
    const money = { amountMinor: 150_000n, currency: "VND" };
    return {
      id: `${at}`,
      command: "SALE",
      acquirer: "",
      ...money,
      ...(ends === undefined ? { state: "ERROR", reversal: "done" } : { state: "INIT", reversal: null }),
      facts: { kind: "card", fields },
    } as unknown as Transaction;
  });
  const unmatched = new UnmatchedAnswers({
    store: {
      undecided(tid, traceNo) {
        if (fails) return Promise.reject(new Error("the database is away"));
        const rows = transactions.filter(
          ({ facts: { fields } }) => (tid === "" || fields["tid"] === tid) && fields["traceNo"] === traceNo,
        );
        return Promise.resolve(
          rows.map(({ id }) => ({ partnerId: "partner" as PartnerId, transactionId: id as TransactionId })),
        );
      },
    },
    transactions: {
      async find(_, id) {
        const at = transactions.findIndex((one) => one.id === id);
        const found = transactions[at];
        // Its end is durable after the first look.
        if (found !== undefined) transactions[at] = { ...found, ...ends };
        return found;
      },
    },
    acquirers: { of: () => ({ ...noAcquirer, approvals: new Set(["00", "08"]) }) },
    events: {
      async record({ kind, detail }) {
        await setImmediate();
        events.push({ kind, detail });
      },
    },
    lateSettlements: { answeredUnmatched: () => Promise.resolve(inDoubt.length === 1) },
    ledger: { answeredLate: ({ id }, { responseCode }) => void told.push(`${id} ${responseCode}`) },
    log: createLog("error", new Writable({ write: (line, _, done) => done(void logged.push(String(line))) })),
  });
  const handled = unmatched.handle(acquirer, {
    ...{ tid: sale.tid, traceNo: sale.traceNo, responseCode: "00", approveCode: "", refId: "", tc: "" },
    known: { field11: sale.traceNo },
    mayAnswer: ({ mid, traceNo, command, atMs: ofMs }) =>
      mid === sale.mid && traceNo === sale.traceNo && command === "SALE" && ofMs === atMs,
    ...change,
  });
  await (stops ? unmatched.stop() : handled);
  return { told, logged, events };
}

const approvalUnmatched = [{ kind: "approval_unmatched", detail: { field11: "000042", responseCode: "00" } }];

test("an answer that matches no request is passed to the ledger, for the transaction that it names", async () => {
  const earlier = { ...sale, transDateTime: "2026-01-30T09:30:01.000Z" };
  const { told, logged } = await take([{ ...sale, traceNo: "000041" }, earlier, sale]);
  expect(told).toEqual(["2 00"]);
  expect(logged).toEqual([]);
});

test.each([
  ["of another terminal", { tid: "T0000002" }],
  ["that no message can have had", { mayAnswer: () => false }],
])("an approval %s is assigned to no transaction, and is an event", async (_, change) => {
  const { told, events } = await take([sale], change);
  expect(told).toEqual([]);
  expect(events).toEqual(approvalUnmatched);
});

test.each([
  ["is declined all the same is an event", { state: "ERROR", reversal: null }, [], approvalUnmatched],
  ["is in doubt repeats its Reversal", { state: "ERROR", reversal: "pending" }, ["0 00"], []],
  ["is approved is that answer once more", { state: "SUCCESS", reversal: null }, [], []],
] as const)("an approval of a command in flight that %s", async (_, ends, told, events) => {
  expect(await take([sale], {}, false, "", ends)).toMatchObject({ told, events });
});

test("a stop waits until an approval is an event, and for no command that another instance may end", async () => {
  expect(await take([], {}, false, "", undefined, true)).toMatchObject({ told: [], events: approvalUnmatched });
  const inFlight = { state: "INIT", reversal: null } as const;
  expect(await take([sale], {}, false, "", inFlight, true)).toMatchObject({ told: [], events: approvalUnmatched });
});

test("a decline that matches nothing is no event, and an answer that may be an approval is one", async () => {
  expect((await take([], { responseCode: "51" })).events).toEqual([]);
  expect((await take([], { responseCode: "85", isAmbiguous: true })).events).toHaveLength(1);
});

test("an answer that does not repeat its terminal is that of every transaction that it may answer", async () => {
  const elsewhere = { ...sale, tid: "T0000002" };
  const { told, events } = await take([sale, { ...sale, traceNo: "000041" }, elsewhere], { tid: "" });
  expect(told).toEqual(["0 00", "2 00"]);
  expect(events).toEqual([]);
});

test("an approval that cannot be looked up is logged, and is an event", async () => {
  const { told, logged, events } = await take([sale], {}, true);
  expect(told).toEqual([]);
  expect(logged.join()).toContain("a late answer could not be looked up");
  expect(events).toEqual(approvalUnmatched);
});

test("an approval of a Settlement that is not known, or may be that of several, is an event", async () => {
  for (const known of [[], [sale, sale]])
    expect(await take(known, { isSettlement: true })).toMatchObject({ told: [], events: approvalUnmatched });
  expect(await take([sale], { isSettlement: true })).toMatchObject({ told: [], events: [] });
  expect((await take([], { isSettlement: true, responseCode: "12" })).events).toEqual([]);
});

test("an answer of another acquirer is that of another transaction, whatever its numbers", async () => {
  const { told, events } = await take([sale], {}, false, "second");
  expect(told).toEqual([]);
  expect(events).toMatchObject([{ detail: { acquirer: "second" } }]);
});
