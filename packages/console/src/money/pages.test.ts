import { createElement, type ReactElement } from "react";
import { expect, test } from "vitest";
import type { Session } from "../api/operations.ts";
import { operator, type PageCase, partner, show, viewer } from "../shown.fixture.ts";
import { AcquirersPage } from "./acquirers-page.tsx";
import { ClearingFilePage, ClearingPage } from "./clearing-page.tsx";
import { MoneyPage } from "./money-page.tsx";
import { BatchPage, SettlementPage } from "./settlement-page.tsx";
import { OwnTransactionPage, TransactionPage } from "./transaction-page.tsx";

const at = (second: number) => `2020-11-22T10:00:0${second}.000Z`;
const of = (...items: readonly object[]) => ({ items, next: null });
const reversal = {
  ...{
    id: "r-1",
    partnerId: "p-1",
    state: "PARKED",
    command: "SALE",
    amount: "12.5",
    currency: "USD",
    createdAt: at(1),
  },
  ...{ merchantTransId: "o-1", reqId: "q-1", tid: "T1", tries: 3, acquirer: "bank" },
};
const settling = {
  ...{ id: "s-1", partnerId: "p-1", state: "sending", kind: "SETTLEMENT", isUploaded: false, tid: "T1", tries: 4 },
  ...{ createdAt: at(1), dueAt: "2100-01-01T00:00:00.000Z", acquirer: "bank" },
};
const transaction = {
  ...{
    id: "t-1",
    partnerId: "p-1",
    createdAt: at(1),
    completedAt: at(2),
    command: "SALE",
    state: "SUCCESS",
    tid: "T1",
  },
  ...{ amount: "12.5", currency: "USD", batchNo: "000007", reqId: "q-1", externalId: "x-1", originalId: "t-0" },
  ...{ isoResponseCode: "00", approveCode: "A1", refId: "417", reversal: null, acquirer: "bank", origin: "command" },
  ...{ merchantTransId: "o-1", notificationId: "n-1", batchId: "b-1" },
};
const totals = { saleQuantity: 1, saleTotalMinor: "1250", voidQuantity: 2, voidTotalMinor: "300" };
const refunds = { refundQuantity: 4, refundTotalMinor: "50" };
const batch = {
  ...{ id: "b-1", partnerId: "p-1", tid: "T1", mid: "M1", batchNo: "000007", currency: "USD", settlementId: "s-1" },
  ...{ ...totals, ...refunds, closedAt: at(3) },
};
const settled = {
  ...{ ...settling, state: "settled", mid: "M1", batchNo: "000007", batchId: "b-1", currency: "USD", dueAt: null },
  ...{ totals: { ...totals, ...refunds }, acquirerTotals: { ...totals, ...refunds, voidTotalMinor: "301" } },
  ...{ acquirerFields: null, acceptedLate: null, isoResponseCode: "00", refId: "417", settlementDate: "1122" },
  ...{ completedAt: at(2), origin: "command", notificationId: "n-1", listed: 9 },
};
const merchant = {
  ...{ partnerId: "p-1", mid: "M1", merchantName: "Cafe", currency: "USD", ...totals, ...refunds },
  ...{ reversedQuantity: 5, declinedQuantity: 6 },
};
const line = {
  ...{ line: 8, kind: "sale", refId: "417", trace: "1", tid: "T1", mid: "M1", minor: "1300", currency: "USD" },
  ...{ day: "2026-11-22", reason: "late" },
};
const exception = {
  ...{ id: "e-1", kind: "different", state: "open", acquirer: "bank", partnerId: "p-1", transactionId: "t-1" },
  ...{ fileId: "f-1", line, reason: null, createdAt: at(1), notificationId: null, proof: null, resolvedAt: null },
  here: { refId: "418", traceNo: "1", tid: "T1", amount: "12.5", currency: "USD" },
  differences: [
    { field: "amount", here: "1250", there: "1300" },
    { field: "state", here: "ERROR 51", there: "" },
  ],
};
const file = {
  ...{ id: "f-1", acquirer: "bank", name: "f.csv", state: "done", receivedAt: at(1), doneAt: at(2), lines: 1 },
  ...{ matched: 2, waiting: 3, missingHere: 4, missingThere: 50, different: 600, fees: 7, chargebacks: 8000 },
  totals: [{ kind: "sale", currency: "USD", lines: 9, totalMinor: "1250" }],
};
const link = { ok: true, detail: "signed on", heardAt: at(4) };
const acquirer = {
  ...{
    name: "bank",
    hosts: ["a:1", "b:2"],
    tls: "on",
    hasKey: true,
    hasMacKey: false,
    createdAt: at(1),
    updatedAt: at(2),
  },
  ...{
    profile: { name: "P", mac: { algorithm: "X9.19" }, network: { sessions: "one" } },
    link: { ...link, ok: false },
  },
};
const own = {
  ...{ id: "t-1", command: "SALE", status: "SUCCESS", amount: "12.5", currency: "USD", merchantTransId: "o-1" },
  ...{
    reqId: "q-1",
    refId: "417",
    approveCode: "A1",
    tid: "T1",
    isoResponseCode: "00",
    createdAt: at(1),
    reversal: null,
  },
  ...{ batch: { batchNo: "000007", state: "closed", closedAt: at(3) }, notification: { id: "n-1" } },
  chain: [
    { id: "t-0", command: "PREAUTH", status: "ERROR", amount: "9", createdAt: at(0) },
    { id: "t-1", command: "SALE", status: "SUCCESS", amount: "12.5", createdAt: at(1) },
  ],
};
const operatorApi = "/operator/v1";
const answers: Readonly<Record<string, unknown>> = {
  "/v1/transactions/t-1": own,
  [`${operatorApi}/partners`]: of({ id: "p-1", settings: { name: "Shop" } }),
  [`${operatorApi}/reversals`]: of(reversal),
  [`${operatorApi}/reversals/t-1`]: { tries: 3, responseCode: "12" },
  [`${operatorApi}/settlements`]: of(settling),
  [`${operatorApi}/transactions`]: { ...of(transaction), next: "t-1" },
  [`${operatorApi}/transactions/t-1/chain`]: of(transaction),
  [`${operatorApi}/batches`]: of(batch),
  [`${operatorApi}/batches/b-1`]: batch,
  [`${operatorApi}/settlements/s-1`]: settled,
  [`${operatorApi}/merchants`]: of(merchant),
  [`${operatorApi}/events`]: of({
    id: "v-1",
    kind: "totals_differ",
    at: at(5),
    detail: { tid: "T1", reason: "asked" },
  }),
  [`${operatorApi}/clearing-exceptions`]: of(exception),
  [`${operatorApi}/clearing-files`]: of(file),
  [`${operatorApi}/clearing-files/f-1`]: file,
  [`${operatorApi}/acquirers`]: { ofSettings: { kind: "iso8583", link }, items: [acquirer] },
  [`${operatorApi}/acquirers/bank/terminals`]: of({ partnerId: "p-1", tid: "T1", mid: "M1", merchantName: "Cafe" }),
};

const money = createElement(MoneyPage);
const clearing = createElement(ClearingPage);
const acquirers = createElement(AcquirersPage);
const settlement = createElement(SettlementPage, { id: "s-1" });
const shop = "Shop → /partners/p-1";
const transactions = [
  "State | Created | Command | Amount | Partner | Terminal | refId",
  `Success | ${at(1)} | SALE → /transactions/t-1 | 12.50 USD | ${shop} | T1 | 417`,
];
const settlements = [
  "State | Begun | What | Partner | Terminal | Tries | Next try | Actions",
  `Sent: the acquirer has not answered | ${at(1)} | Settlement → /settlements/s-1 | ${shop} | T1 | 4 | 2100-01-01T00:00:00.000Z | Abort`,
];
const bothTotals = [
  "Settled by the uploaded batch: the acquirer had counted otherwise",
  "What | This service | The acquirer | Difference",
  "Sales and Completes | 1 | 1 | same",
  "Their total | 12.50 USD | 12.50 USD | same",
  "Voids | 2 | 2 | same",
  "Total of Voids | 3.00 USD | 3.01 USD | differs",
  "Refunds | 4 | 4 | same",
  "Total of Refunds | 0.50 USD | 0.50 USD | same",
];
const reversals = (state: string) => [
  "State | Since | Transaction | Amount | Partner | Terminal | Tries | Actions",
  `${state} | ${at(1)} | SALE o-1 → /transactions/r-1 | 12.50 USD | ${shop} | T1 | 3 | Retry Resolve It stands`,
];
const exceptions = [
  "Since | Exception | State | Acquirer | Line | Reference | What | Actions",
  `${at(1)} | Different → /transactions/t-1 | Open | bank | sale, line 8 → /clearing/f-1 | 417 | ` +
    "amount: 12.50 USD here, 13.00 USD there state: ERROR 51 here, nothing there late | Resolve",
];
const approved = expect.stringMatching(/^Approved by the acquirer, and settled in batch 000007, .*:\d\d:03$/);
const answer = "00: Approved or completed successfully";
const toIso = (local: string) => encodeURIComponent(new Date(local).toISOString());

const cases: readonly PageCase[] = [
  {
    of: "what is in doubt",
    page: money,
    asks: ["reversals?state=PARKED&limit=50", "reversals?state=PENDING&limit=50", "settlements?limit=50"],
    lines: [...reversals("Parked"), ...reversals("Parked"), ...settlements],
  },
  {
    of: "the transactions",
    page: money,
    search: "tab=transactions&partner=p-1&state=SUCCESS&acquirer=bank",
    asks: ["transactions?partner=p-1&state=SUCCESS&acquirer=bank&limit=50"],
    lines: transactions,
  },
  {
    of: "the batches",
    page: money,
    search: "tab=batches&partner=p-1",
    asks: ["batches?partner=p-1&limit=50"],
    lines: [
      "Batch | Closed | Partner | Terminal | Sales | Their total | Voids | Total of Voids",
      `000007 → /batches/b-1 | ${at(3)} | ${shop} | T1 | 1 | 12.50 USD | 2 | 3.00 USD`,
    ],
  },
  {
    of: "the settlements",
    page: money,
    search: "tab=settlements&partner=p-1",
    asks: ["settlements?partner=p-1&limit=50"],
    lines: settlements,
  },
  {
    of: "the merchants",
    page: money,
    search: "tab=merchants&partner=p-1&day=2026-11-22",
    asks: [`merchants?from=${toIso("2026-11-22T00:00")}&to=${toIso("2026-11-23T00:00")}&partner=p-1`],
    lines: [
      "Merchant | Partner | Sales | Their total | Voids | Refunds | Reversed | Declined",
      `Cafe M1 | ${shop} | 1 | 12.50 USD | 2 | 4 | 5 | 6`,
    ],
  },
  {
    of: "a settlement",
    page: settlement,
    asks: ["settlements/s-1", "events?subject=s-1&limit=50", "transactions?partner=p-1&batch=b-1&limit=50"],
    lines: [
      ...bothTotals,
      "When | What",
      `${at(5)} | totals differ reason asked`,
      `Partner: ${shop}`,
      "Merchant: M1",
      "Acquirer: bank",
      `Its answer: ${answer}`,
      "refId: 417",
      "Its date at the acquirer: 1122",
      "Tries of this step: 4",
      `Begun: ${at(1)}`,
      `Ended: ${at(2)}`,
      "Came by: a command of the partner",
      "Batch: Open it → /batches/b-1",
      "Notification: Open it → /notifications/n-1",
      "Id: s-1",
      ...transactions,
    ],
  },
  {
    of: "a batch",
    page: createElement(BatchPage, { id: "b-1" }),
    asks: ["batches/b-1", "settlements/s-1", "transactions?partner=p-1&batch=b-1&limit=50"],
    lines: [
      ...bothTotals,
      `Partner: ${shop}`,
      "Merchant: M1",
      `Closed: ${at(3)}`,
      "Settlement: Open it → /settlements/s-1",
      "Its date at the acquirer: 1122",
      "Id: b-1",
      ...transactions,
    ],
  },
  {
    of: "a transaction",
    page: createElement(TransactionPage, { id: "t-1" }),
    asks: ["transactions/t-1/chain", "batches/b-1"],
    lines: [
      approved,
      `SALE12.50 USDSuccess${at(1)} → /transactions/t-1`,
      "Transaction: t-1",
      `Partner: ${shop}`,
      "Acquirer: bank",
      `Its answer: ${answer}`,
      "Approve code: A1",
      "refId: 417",
      "reqId: q-1",
      "externalId: x-1",
      "Terminal, batch: T1, 000007",
      "Came by: a command of the partner",
      `Created: ${at(1)}`,
      `Completed: ${at(2)}`,
      "Settled: in batch 000007 → /batches/b-1",
      "Notification: Open it → /notifications/n-1",
    ],
  },
  {
    of: "a partner's own transaction",
    page: createElement(OwnTransactionPage, { id: "t-1" }),
    session: partner,
    asks: ["/v1/transactions/t-1"],
    lines: [
      approved,
      `PREAUTH9.00 USDDeclined${at(0)} → /transactions/t-0`,
      `SALE12.50 USDSuccess${at(1)} → /transactions/t-1`,
      "Transaction: t-1",
      "Settled: in batch 000007",
      `The acquirer's answer: ${answer}`,
      "Approve code: A1",
      "refId: 417",
      "reqId: q-1",
      "Terminal: T1",
      `Created: ${at(1)}`,
      "Notification: Open it → /notifications/n-1",
    ],
  },
  {
    of: "the exceptions of clearing files",
    page: clearing,
    search: "acquirer=bank",
    asks: ["clearing-exceptions?state=open&acquirer=bank&limit=50"],
    lines: exceptions,
  },
  {
    of: "the clearing files",
    page: clearing,
    search: "tab=files&acquirer=bank",
    asks: ["clearing-files?acquirer=bank&limit=50"],
    lines: [
      "File | Received | Acquirer | State | Lines | Matched | Exceptions",
      `f.csv → /clearing/f-1 | ${at(1)} | bank | Matched | 1 | 2 | 8654`,
    ],
  },
  {
    of: "a clearing file",
    page: createElement(ClearingFilePage, { id: "f-1" }),
    asks: ["clearing-files/f-1", "clearing-exceptions?file=f-1&limit=50"],
    lines: [
      "Acquirer: bank",
      `Received: ${at(1)}`,
      "Lines: 1",
      "Matched: 2",
      "Waiting for their transaction: 3",
      "Missing here: 4",
      "Missing there: 50",
      "Different: 600",
      "Fees: 7",
      "Chargebacks: 8000",
      "Kind | Lines | Total",
      "sale | 9 | 12.50 USD",
      ...exceptions,
    ],
  },
  {
    of: "the acquirers",
    page: acquirers,
    asks: [
      ...["reversals?state=PARKED&limit=500", "reversals?state=PENDING&limit=500", "settlements?limit=500"],
      "acquirers/bank/terminals",
    ],
    lines: [
      "Kind: iso8583",
      `Last message: ${at(4)}`,
      "In doubt: nothing",
      "Its terminals: each that names no other acquirer",
      "Profile: P",
      "Hosts, in order: a:1, b:2",
      `Last message: ${at(4)}`,
      "In doubt: 1 Reversal given up, 1 Reversal in progress, 1 settlement in progress → /money",
      "TLS: on, with our client certificate",
      "MAC: X9.19, its key is missing",
      "Sessions: one in all: one instance connects for the others",
      `Registered: ${at(1)}`,
      `Changed: ${at(2)}`,
      "Terminal | Merchant | Partner",
      `T1 → /notifications?partner=p-1&tid=T1 | Cafe M1 | ${shop}`,
    ],
  },
];

const everywhere = /^GET \/operator\/v1\/(?:partners\?limit=500|acquirers)$/;

test.each(cases)("the page of $of asks for it, and shows each value under its name", async (one) => {
  const { page, session = operator, search, asks, lines } = one;
  const shown = await show(page, session, answers, search);
  expect(shown.asked.filter((asked) => !everywhere.test(asked))).toEqual(
    asks.map((path) => (path.startsWith("/") ? `GET ${path}` : `GET ${operatorApi}/${path}`)),
  );
  expect(shown.lines).toEqual(lines);
});

test.each<[of: string, page: ReactElement, more: object, offered: readonly string[]]>([
  ["a clearing exception", clearing, {}, ["Resolve"]],
  ["what is in doubt", money, {}, ["Retry", "Resolve", "It stands", "Abort"]],
  [
    ...(["a settlement under way", settlement] as const),
    { [`${operatorApi}/settlements/s-1`]: { ...settled, state: "sending", dueAt: at(1) } },
    ["Abort"],
  ],
  [
    ...(["a settlement accepted late", settlement] as const),
    { [`${operatorApi}/settlements/s-1`]: { ...settled, state: "refused", acceptedLate: "in_doubt" } },
    ["Resolve"],
  ],
  [
    ...(["a parked Reversal", createElement(TransactionPage, { id: "t-1" })] as const),
    { [`${operatorApi}/transactions/t-1/chain`]: of({ ...transaction, reversal: "parked" }) },
    ["Retry", "Resolve", "It stands"],
  ],
  [
    ...(["a Reversal that is done", createElement(TransactionPage, { id: "t-1" })] as const),
    { [`${operatorApi}/transactions/t-1/chain`]: of({ ...transaction, reversal: "done" }) },
    ["Reverse again"],
  ],
  [
    ...(["a switch's Reversal", createElement(TransactionPage, { id: "t-1" })] as const),
    { [`${operatorApi}/transactions/t-1/chain`]: of({ ...transaction, reversal: "parked", origin: "switch" }) },
    [],
  ],
])("decisions on %s are offered to an operator, and not to a viewer", async (_, page, more, offered) => {
  const others = /^(?:Cancel|Save .*|Show more)$| \(disabled\)$/;
  const offeredTo = async (session: Session) =>
    new Set((await show(page, session, { ...answers, ...more })).buttons.filter((name) => !others.test(name)));
  expect([...(await offeredTo(operator))]).toEqual(offered);
  expect([...(await offeredTo(viewer))]).toEqual([]);
});

test.each<[page: ReactElement, tones: readonly string[]]>([
  [money, ["bad", "bad", "wait"]],
  [clearing, ["bad"]],
  [acquirers, ["good", "good", "bad", "bad"]],
  [settlement, ["good", "good", "good", "good", "bad", "good", "good", "good"]],
])("only what is well is green: %#", async (page, tones) => {
  expect((await show(page, viewer, answers)).tones).toEqual(tones);
});

test("a partner's own transaction is told as undone by what came after it, not by what came before", async () => {
  const undone = (id: string) => ({ ...own, chain: [{ id, command: "VOID", status: "SUCCESS", createdAt: at(2) }] });
  const headline = async (id: string) => {
    const page = createElement(OwnTransactionPage, { id: "t-1" });
    return (await show(page, partner, { ...answers, "/v1/transactions/t-1": undone(id) })).lines[0];
  };
  expect(await headline("t-2")).toBe("Approved, and undone by a Void since");
  expect(await headline("t-0")).toEqual(approved);
});

test("an exception of clearing is resolved by its id, and all that is shown is read again", async () => {
  const { click } = await show(clearing, operator, answers);
  expect(await click("Resolve")).toMatchObject({
    sent: [`POST ${operatorApi}/clearing-exceptions/e-1/resolve {"reason":""}`],
    stale: expect.arrayContaining(["clearing-exceptions"]),
  });
});

test("transactions and a day's merchants are saved with each value in its column", async () => {
  const transactions = await show(money, viewer, answers, "tab=transactions");
  expect((await transactions.click("Save it as CSV")).saved).toEqual([
    "transactions.csv",
    "id,partnerId,createdAt,completedAt,command,state,amount,currency,tid,batchNo,reqId,externalId,originalId," +
      "isoResponseCode,approveCode,refId,reversal,acquirer\r\n" +
      `t-1,p-1,${at(1)},${at(2)},SALE,SUCCESS,12.5,USD,T1,000007,q-1,x-1,t-0,00,A1,417,,bank\r\n`,
  ]);
  const merchants = await show(money, viewer, answers, "tab=merchants&day=2026-11-22");
  expect((await merchants.click("Save as CSV")).saved).toEqual([
    "merchants-2026-11-22.csv",
    "day,partnerId,partner,mid,merchantName,currency,saleQuantity,saleTotal,voidQuantity,voidTotal,refundQuantity," +
      "refundTotal,reversedQuantity,declinedQuantity\r\n" +
      "2026-11-22,p-1,Shop,M1,Cafe,USD,1,12.50,2,3.00,4,0.50,5,6\r\n",
  ]);
});
