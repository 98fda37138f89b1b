import { Writable } from "node:stream";
import { expect, test } from "vitest";
import type { UnmatchedAnswer } from "../acquirer/acquirer.ts";
import type { PartnerId, TransactionId } from "../ids.ts";
import { createLog } from "../log.ts";
import type { Transaction } from "./transaction.ts";
import { UnmatchedAnswers } from "./unmatched-answers.ts";

const sale = { tid: "T0000001", mid: "M00000000000001", traceNo: "000042", transDateTime: "2026-01-31T09:30:01.000Z" };
const atMs = Date.parse(sale.transDateTime);

/** The calls and log lines for this answer, with these transactions in doubt on the terminal. */
async function take(
  inDoubt: readonly (typeof sale)[],
  change: Partial<UnmatchedAnswer> = {},
  fails = false,
  acquirer = "",
) {
  const told: string[] = [];
  const logged: string[] = [];
  const transactions = inDoubt.map((fields, at) => {
    return { id: `${at}`, command: "SALE", acquirer: "", facts: { kind: "card", fields } } as unknown as Transaction;
  });
  const unmatched = new UnmatchedAnswers({
    store: {
      reversedRecently(tid) {
        if (fails) return Promise.reject(new Error("the database is away"));
        const rows = transactions.filter(({ facts }) => facts.fields["tid"] === tid);
        return Promise.resolve(
          rows.map(({ id }) => ({ partnerId: "partner" as PartnerId, transactionId: id as TransactionId })),
        );
      },
    },
    transactions: { find: (_, id) => Promise.resolve(transactions.find((one) => one.id === id)) },
    ledger: { answeredLate: ({ id }, { responseCode }) => void told.push(`${id} ${responseCode}`) },
    log: createLog("error", new Writable({ write: (line, _, done) => done(void logged.push(String(line))) })),
  });
  const { tid, mid, traceNo } = sale;
  const mayAnswer = (command: string, ofMs: number) => command === "SALE" && ofMs === atMs;
  await unmatched.handle(acquirer, { tid, mid, traceNo, responseCode: "00", mayAnswer, ...change });
  return { told, logged };
}

test("an answer that matches no request is passed to the ledger, for the transaction that it names", async () => {
  const earlier = { ...sale, transDateTime: "2026-01-30T09:30:01.000Z" };
  const { told, logged } = await take([{ ...sale, traceNo: "000041" }, earlier, sale]);
  expect(told).toEqual(["2 00"]);
  expect(logged).toEqual([]);
});

test.each([
  ["another terminal", { tid: "T0000002" }],
  ["another merchant", { mid: "M00000000000002" }],
  ["another message of that number", { traceNo: "000043" }],
  ["another command, or another time", { mayAnswer: () => false }],
])("an answer of %s is assigned to no transaction", async (_, change) => {
  expect((await take([sale], change)).told).toEqual([]);
});

test("an answer that cannot be looked up is logged, and ends nothing", async () => {
  const { told, logged } = await take([sale], {}, true);
  expect(told).toEqual([]);
  expect(logged.join()).toContain("a late answer could not be looked up");
});

test("an answer of another acquirer is that of another transaction, whatever its numbers", async () => {
  expect((await take([sale], {}, false, "second")).told).toEqual([]);
});
