import { describe, expect, test } from "vitest";
import type { CompletionRequest } from "./completion.ts";
import { reportedFacts } from "./reported-facts.ts";

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
    const facts = reportedFacts({ ...report, command: "VOID" }, { id, voidsPreAuth: true });
    expect(facts).toMatchObject({ kind: "card", command: "VOID", voidsPreAuth: true });
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
