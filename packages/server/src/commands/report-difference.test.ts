import { expect, test } from "vitest";
import { type ReportContent, reportDifference } from "./report-difference.ts";

const sale: ReportContent = {
  command: "SALE",
  originalExternalId: null,
  callBackUrl: null,
  facts: { kind: "card", command: "SALE", fields: { id: "1", amount: "5", currency: "VND" } },
};
const withFields = (fields: Record<string, string>): ReportContent => ({
  ...sale,
  facts: { kind: "card", command: "SALE", fields },
});
const settlement = (list: readonly { reqId: string; refNo: string }[]): ReportContent => ({
  ...sale,
  command: "SETTLEMENT",
  facts: { kind: "settlement", command: "SETTLEMENT", fields: { id: "1" }, settlementList: list },
});

test.each<[ReportContent, string[]]>([
  [sale, []],
  [withFields({ id: "2", amount: "5", currency: "VND" }), ["id"]],
  [withFields({ id: "1", amount: "6", currency: "VND" }), ["amount"]],
  [withFields({ id: "1", amount: "5", tid: "T1" }), ["currency", "tid"]],
  [{ ...sale, callBackUrl: "https://partner.example/" }, ["callBackUrl"]],
  [{ ...sale, originalExternalId: "SW-0" }, ["originalExternalId"]],
  [{ ...sale, command: "PREAUTH" }, ["command"]],
])("%j differs in %j", (now, differs) => {
  expect(reportDifference(now, sale, true)).toEqual(differs);
});

test("an id that the switch did not give is no difference", () => {
  expect(reportDifference(withFields({ id: "2", amount: "5", currency: "VND" }), sale, false)).toEqual([]);
});

test("a list differs by its entries and their order", () => {
  const [one, two] = [
    { reqId: "a", refNo: "1" },
    { reqId: "b", refNo: "1" },
  ];
  expect(reportDifference(settlement([one, two]), settlement([one, two]), true)).toEqual([]);
  expect(reportDifference(settlement([two, one]), settlement([one, two]), true)).toEqual(["settlementList"]);
});
