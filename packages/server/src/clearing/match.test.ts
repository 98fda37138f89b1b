import { expect, test } from "vitest";
import { clearingSchema } from "../acquirer/iso8583/profile/schema.ts";
import { newId } from "../ids.ts";
import { type ClearingCandidate, judge } from "./match.ts";
import type { ClearingLayout, ClearingLine } from "./read-file.ts";

const columns = { kind: "TYPE", refId: "RRN", trace: "STAN", amount: "AMOUNT", currency: "CCY", date: "DATE" };
const section = clearingSchema.parse({ format: "csv", header: true, columns, kinds: { S: "sale" } });
const layout: ClearingLayout = { section, currencies: { USD: { number: "840", exponent: 2 } }, timeZone: "UTC" };
const line: ClearingLine = {
  ...{ line: 2, kind: "sale", refId: "123456789012", trace: "000417", tid: "", mid: "" },
  ...{ minor: "1250", currency: "USD", day: "2026-11-21", reason: "" },
};
const sale: ClearingCandidate = {
  ...{ partnerId: newId(), id: newId(), notificationId: null, command: "SALE", state: "SUCCESS", reversal: null },
  ...{ isVoided: false, isoResponseCode: "00", refId: "123456789012", trace: "000417", amount: "12.50" },
  ...{ currency: "USD", time: "2026-11-21T09:59:59.000Z", atMs: Date.parse("2026-11-21T10:00:00Z") },
};

function differencesOf(line: ClearingLine, one: ClearingCandidate): readonly string[] {
  const judged = judge(line, [one], layout);
  return judged.kind === "different" ? judged.differences.map(({ field, here }) => `${field} ${here}`) : [judged.kind];
}

test("a line matches its transaction, however many decimals the ledger has of the amount", () => {
  expect(differencesOf(line, sale)).toEqual(["matched"]);
  expect(differencesOf(line, { ...sale, amount: "12.5" })).toEqual(["matched"]);
  expect(differencesOf({ ...line, minor: "1200" }, { ...sale, amount: "12" })).toEqual(["matched"]);
  expect(differencesOf({ ...line, minor: "1251" }, sale)).toEqual(["amount 1250"]);
});

test("a line of what was declined, or whose Reversal is pending, done or parked, differs", () => {
  expect(differencesOf(line, { ...sale, state: "ERROR", isoResponseCode: "68" })).toEqual(["state ERROR 68"]);
  for (const reversal of ["pending", "done", "parked"] as const) {
    expect(differencesOf(line, { ...sale, reversal })).toEqual([`state reversal ${reversal}`]);
  }
});

test.each<[string, Partial<ClearingLine>, Partial<ClearingCandidate>, readonly string[]]>([
  ["another currency", { currency: "EUR" }, {}, ["currency USD"]],
  ["another reference", { refId: "999999999999" }, {}, ["refId 123456789012"]],
  ["no reference", { refId: "" }, {}, ["matched"]],
  ["another trace number", { trace: "000418" }, {}, ["trace 000417"]],
  ["no trace number", {}, { trace: "" }, ["matched"]],
  ["the day before", { day: "2026-11-20" }, {}, ["matched"]],
  ["two days before", { day: "2026-11-19" }, {}, ["date 2026-11-21"]],
  ["the last day that the profile allows", { day: "2026-11-24" }, {}, ["matched"]],
  ["a day later", { day: "2026-11-25" }, {}, ["date 2026-11-21"]],
  ["a Sale that was reported days later", {}, { atMs: Date.parse("2026-11-24T10:00:00Z") }, ["matched"]],
  ["the same with 14 digits", {}, { time: "20261121235959", atMs: Date.parse("2026-11-24T10:00:00Z") }, ["matched"]],
  [
    "the day of a report without a time",
    { day: "2026-11-24" },
    { time: "", atMs: Date.parse("2026-11-24T10:00:00Z") },
    ["matched"],
  ],
  ["a Sale by a clock that is wrong", {}, { time: "20160101000000" }, ["matched"]],
  ["a Sale of another week", { day: "2026-12-24" }, { time: "20261121235959" }, ["date 2026-11-21"]],
  ["a sale for a Refund", {}, { command: "REFUND" }, ["kind REFUND"]],
  ["a refund for a Sale", { kind: "refund" }, {}, ["kind SALE"]],
  ["a refund for a Refund", { kind: "refund" }, { command: "REFUND" }, ["matched"]],
  ["a sale for a PreAuth-Complete", {}, { command: "PREAUTH_COMPLETE" }, ["matched"]],
  ["a sale for a PreAuth", {}, { command: "PREAUTH" }, ["kind PREAUTH"]],
  ["a sale that was voided", {}, { isVoided: true }, ["state voided"]],
  ["a sale that stands", {}, { reversal: "stands" }, ["matched"]],
])("%s", (_, there, here, differences) => {
  expect(differencesOf({ ...line, ...there }, { ...sale, ...here })).toEqual(differences);
});

test("a profile that lets no line wait still allows the day after", () => {
  const today = { ...layout, section: { ...section, daysMax: 0 } };
  const kinds = ["2026-11-22", "2026-11-23"].map((day) => judge({ ...line, day }, [sale], today).kind);
  expect(kinds).toEqual(["matched", "different"]);
});

test("where the file lists Voids, a voided sale is in it too", () => {
  const listed = { ...layout, section: { ...section, voids: "listed" as const } };
  expect(judge(line, [{ ...sale, isVoided: true }], listed)).toMatchObject({ kind: "matched" });
});

test("of several transactions, the one that differs least is meant, and of equal ones the newest", () => {
  const other = { ...sale, id: newId<"transaction">(), amount: "99.00" };
  expect(judge(line, [other, sale], layout)).toEqual({ kind: "matched", with: sale });
  const newer = { ...sale, id: newId<"transaction">(), atMs: sale.atMs + 1_000 };
  expect(judge(line, [sale, newer], layout)).toEqual({ kind: "matched", with: newer });
});

test("a chargeback is about a charge, and of several about that of its amount, though others are newer", () => {
  const chargeback = { ...line, kind: "chargeback" as const, day: "2026-12-30" };
  const later = { id: newId<"transaction">(), atMs: sale.atMs + 1_000 };
  const refund = { ...sale, ...later, command: "REFUND" as const };
  expect(judge(chargeback, [refund, sale], layout)).toEqual({ kind: "matched", with: sale });
  const other = { ...sale, ...later, refId: "", amount: "99.00" };
  expect(judge({ ...chargeback, refId: "" }, [other, sale], layout)).toEqual({ kind: "matched", with: sale });
});

test("a fee and a chargeback have an amount and a day of their own", () => {
  for (const kind of ["fee", "chargeback"] as const) {
    expect(differencesOf({ ...line, kind, minor: "30", day: "2026-12-30" }, sale)).toEqual(["matched"]);
  }
});
