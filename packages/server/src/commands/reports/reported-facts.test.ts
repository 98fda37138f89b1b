import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../../ids.ts";
import type { CompletionRequest } from "./completion.ts";
import { type ReportContent, reportDifference, reportedBatch, reportedFacts } from "./reported-facts.ts";

const id = "01980000-0000-7000-8000-000000000001";
const report: CompletionRequest = {
  partnerId: "01980000-0000-7000-8000-000000000009",
  externalId: "SW-1",
  command: "SALE",
  originalExternalId: "SW-0",
  callBackUrl: "https://partner.example/ipn",
  status: "SUCCESS",
  isoResponseCode: "00",
  amount: "150000",
  merchantName: "Shop & Sons",
};
const of = (change: Partial<CompletionRequest>) => reportedFacts({ ...report, ...change }, { id });

describe("a report's facts", () => {
  test("are the fields of its table as given, under the transaction's id, and none of our own", () => {
    expect(
      of({ paymentType: "qrmo", mid: "M1", merchantId: "M2", cardScheme: "Visa", transaction_type: "SETTLE" }),
    ).toEqual({
      kind: "card",
      command: "SALE",
      fields: {
        id,
        status: "SUCCESS",
        isoResponseCode: "00",
        amount: "150000",
        merchantName: "Shop & Sons",
        paymentType: "qrmo",
        mid: "M1",
        merchantId: "M2",
        cardScheme: "Visa",
        transaction_type: "SETTLE",
      },
    });
  });

  test("let mid and merchantId stand for each other, a scheme follow from its AID, and paymentType be card", () => {
    expect(of({ mid: "M1" })).toMatchObject({ fields: { mid: "M1", merchantId: "M1", paymentType: "card" } });
    expect(of({ merchantId: "M2", mid: "" })).toMatchObject({ fields: { mid: "M2", merchantId: "M2" } });
    expect(of({ aid: "A0000000041010" })).toMatchObject({ fields: { cardScheme: "MASTER" } });
    expect(of({ aid: "A0000000041010", cardScheme: "JCB" })).toMatchObject({ fields: { cardScheme: "JCB" } });
  });

  test("of the Void of a PreAuth say so", () => {
    const facts = reportedFacts({ ...report, command: "VOID" }, { id, voidsPreAuth: true, originalReqId: "r-1" });
    expect(facts).toMatchObject({ kind: "card", command: "VOID", voidsPreAuth: true, originalReqId: "r-1" });
    expect(of({ command: "VOID" })).not.toHaveProperty("voidsPreAuth");
  });

  test("of a Settlement carry its own totals and list", () => {
    const settlementList = [{ reqId: "r", refNo: "1" }];
    const facts = reportedFacts(
      {
        partnerId: report.partnerId,
        externalId: "SW-2",
        command: "SETTLEMENT",
        status: "SUCCESS",
        mid: "M1",
        currency: "KWD",
        saleQuantity: "3",
        saleTotalAmount: "1.000",
        voidQuantity: "2",
        settlementList,
      },
      { id },
    );
    expect(facts).toEqual({
      kind: "settlement",
      command: "SETTLEMENT",
      currency: "KWD",
      fields: {
        id,
        status: "SUCCESS",
        mid: "M1",
        quantity: "1",
        saleQuantity: "3",
        saleTotalAmount: "1.000",
        voidQuantity: "2",
      },
      settlementList,
    });
  });

  test("of a Settlement without Voids have their total", () => {
    expect(of({ command: "SETTLEMENT", voidQuantity: "0" }).fields).toMatchObject({ voidTotalAmount: "0" });
    expect(of({ command: "SETTLEMENT", voidQuantity: "1" }).fields).not.toHaveProperty("voidTotalAmount");
  });

  test.each(["LOGON", "REVERSAL", "BATCH_UPLOAD"] as const)("of a %s are recorded and not notified", (command) => {
    expect(of({ command })).toMatchObject({ kind: "system", fields: { id, status: "SUCCESS", isoResponseCode: "00" } });
  });
});

describe("reported batch", () => {
  const partnerId = newId<"partner">();
  const of17 = { mid: "M00000000000001", tid: "T0000001", batchNo: "000017" };

  describe("the batch that a switch names", () => {
    test("is the same for the same partner, mid, tid and number, whatever else a report says", () => {
      expect(reportedBatch(partnerId, { ...of17, amount: "5" })).toBe(reportedBatch(partnerId, of17));
      expect(reportedBatch(partnerId, of17)).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
    });

    test("is none without a number, and where nothing says whose number it is", () => {
      expect(reportedBatch(partnerId, { ...of17, batchNo: "" })).toBeNull();
      expect(reportedBatch(partnerId, { batchNo: "000017" })).toBeNull();
      expect(reportedBatch(partnerId, { batchNo: "000017", mid: "M" })).not.toBeNull();
      expect(reportedBatch(partnerId, { batchNo: "000017", tid: "M" })).not.toBeNull();
    });

    test("is another one for any other partner, mid, tid or number", () => {
      const text = fc.stringMatching(/^[0-9A-Za-z ]{1,6}$/);
      const named = fc.record({ mid: text, tid: text, batchNo: text });
      fc.assert(
        fc.property(named, named, (one, other) => {
          const isSame = one.mid === other.mid && one.tid === other.tid && one.batchNo === other.batchNo;
          expect(reportedBatch(partnerId, one) === reportedBatch(partnerId, other)).toBe(isSame);
          for (const field of ["mid", "tid", "batchNo"] as const) {
            const changed = { ...one, [field]: other[field] };
            const isSameField = one[field] === other[field];
            expect(reportedBatch(partnerId, changed) === reportedBatch(partnerId, one)).toBe(isSameField);
          }
          // The end of one field is not the beginning of the next.
          const shifted = { mid: one.mid + one.tid, tid: "", batchNo: one.batchNo };
          expect(reportedBatch(partnerId, shifted)).not.toBe(reportedBatch(partnerId, one));
        }),
      );
      expect(reportedBatch(newId(), of17)).not.toBe(reportedBatch(partnerId, of17));
    });
  });
});

describe("report difference", () => {
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
});
