import { cardIpnFields, settlementIpnFields } from "@paybell/contract";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { CardFacts, SettlementFacts } from "./facts.ts";
import { type RenderSettings, renderIpn, totalAmount } from "./render.ts";

const settings: RenderSettings = {
  transactionTypes: {
    SALE: "SALE",
    VOID: "VOID",
    PREAUTH: "SALE",
    PREAUTH_COMPLETE: "SALE",
    REFUND: "REFUND",
    SETTLEMENT: "SETTLE",
    VOID_PREAUTH: "CANCEL",
  },
  swipeTypes: "code",
  settlementTotal: "sum",
  transactionTime: "table",
  timeZone: "UTC",
};
const at = { callbackUrl: "https://partner.example/ipn" };

const sale: CardFacts = {
  kind: "card",
  command: "SALE",
  fields: {
    aid: "A0000000031010",
    amount: "150000",
    appName: "Shop",
    approveCode: "A1B2C3",
    batchNo: "000007",
    billId: "B-1",
    cardHolder: "NGUYEN VAN A",
    cardNumber: "411111******1111",
    cardScheme: "VISA",
    currency: "VND",
    deviceId: "D-1",
    expDate: "12/27",
    extraData: '{"a":1}',
    id: "01980000-0000-7000-8000-000000000001",
    invoiceNo: "000003",
    isoResponseCode: "00",
    merchantAddress: "1 Le Loi",
    merchantId: "M2",
    merchantName: "Shop Ltd",
    merchantTransId: "MT-1",
    mid: "M1",
    paymentType: "card",
    refId: "123456789012",
    reqId: "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111",
    status: "SUCCESS",
    swipeType: "C",
    tc: "TC1",
    tid: "T1",
    traceNo: "000042",
    transDateTime: "2026-11-21T01:02:03.456Z",
  },
};

const settlement: SettlementFacts = {
  kind: "settlement",
  command: "SETTLEMENT",
  currency: "USD",
  fields: {
    batchNo: "000007",
    deviceId: "D-1",
    extraData: "x",
    id: "01980000-0000-7000-8000-000000000002",
    merchantTransId: "MT-2",
    mid: "M1",
    quantity: "1",
    reqId: "8f14e45f-ceea-467f-a8a6-3c7a0e2ab112",
    saleQuantity: "2",
    saleTotalAmount: "30.00",
    status: "SUCCESS",
    tid: "T1",
    transaction_time: "2026-11-21T01:02:03.456Z",
    voidQuantity: "1",
    voidTotalAmount: "10.00",
  },
  settlementList: [{ reqId: "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111", refNo: "123456789012" }],
};

const card = (change: Partial<CardFacts>, over: Partial<RenderSettings> = {}) =>
  renderIpn({ ...sale, ...change }, { ...settings, ...over }, at).ipn;
const cardWith = (fields: Record<string, string>, over: Partial<RenderSettings> = {}) =>
  card({ fields: { ...sale.fields, ...fields } }, over);
const settle = (fields: Record<string, string> = {}, over: Partial<RenderSettings> = {}) => {
  const facts = { ...settlement, fields: { ...settlement.fields, ...fields } };
  const rendered = renderIpn(facts, { ...settings, ...over }, at);
  if (rendered.kind !== "settlement") throw new Error("a settlement renders as a settlement");
  return rendered.ipn;
};

describe("a card transaction IPN", () => {
  test("has every field of the table with its value", () => {
    expect(renderIpn(sale, settings, at)).toEqual({
      kind: "card",
      ipn: { ...sale.fields, transDateTime: "20261121010203", transaction_type: "SALE" },
    });
  });

  test("has its fields in the table's order, without signature and settlementList", () => {
    const names = cardIpnFields.map((field) => field.name).filter((name) => name !== "signature");
    expect(Object.keys(card({}))).toEqual(names);
    expect(names).not.toContain("settlementList");
  });

  test("has every field also when nothing is known, as empty strings", () => {
    const ipn = card({ fields: {} });
    const names = cardIpnFields.map((field) => field.name).filter((name) => name !== "signature");
    expect(Object.keys(ipn)).toEqual(names);
    expect(Object.values({ ...ipn, transaction_type: "" }).every((value) => value === "")).toBe(true);
  });

  test.each([
    ["SALE", false, "SALE"],
    ["PREAUTH", false, "SALE"],
    ["PREAUTH_COMPLETE", false, "SALE"],
    ["VOID", false, "VOID"],
    ["VOID", true, "CANCEL"],
  ] as const)("of a %s (of a PreAuth: %s) is of type %s", (command, voidsPreAuth, type) => {
    expect(card({ command, voidsPreAuth }).transaction_type).toBe(type);
  });

  test.each([
    ["SALE", "SUCCESS", "A1B2C3", "123456789012"],
    ["VOID", "SUCCESS", "A1B2C3", ""],
    ["SALE", "ERROR", "", ""],
    ["VOID", "ERROR", "", ""],
    ["PREAUTH_COMPLETE", "INIT", "", ""],
  ] as const)("of a %s with status %s has approveCode %j and refId %j", (command, status, approveCode, refId) => {
    const facts = { ...sale, command, fields: { ...sale.fields, status } };
    expect(renderIpn(facts, settings, at).ipn).toMatchObject({ status, approveCode, refId });
  });

  test("follows the partner's own map of types", () => {
    const transactionTypes = { ...settings.transactionTypes, VOID_PREAUTH: "VOID", PREAUTH: "CANCEL" } as const;
    expect(card({ command: "VOID", voidsPreAuth: true }, { transactionTypes }).transaction_type).toBe("VOID");
    expect(card({ command: "PREAUTH" }, { transactionTypes }).transaction_type).toBe("CANCEL");
  });

  test("keeps the type that a switch gave", () => {
    expect(cardWith({ transaction_type: "SETTLE" }).transaction_type).toBe("SETTLE");
  });

  test.each([
    ["F", "F"],
    ["C", "CL"],
    ["CTL", "CLS"],
    ["M", "M"],
    ["S", "S"],
    ["CL", "CL"],
    ["CLS", "CLS"],
    ["", ""],
  ])("sends swipeType %j as given, and as %j under `contact`", (swipeType, contact) => {
    expect(cardWith({ swipeType }).swipeType).toBe(swipeType);
    expect(cardWith({ swipeType }, { swipeTypes: "contact" }).swipeType).toBe(contact);
  });

  test("writes the time in the partner's zone, and 14 digits as a switch gave them", () => {
    expect(card({}, { timeZone: "Asia/Ho_Chi_Minh" }).transDateTime).toBe("20261121080203");
    const digits = cardWith({ transDateTime: "20260101000000" }, { timeZone: "Asia/Ho_Chi_Minh" });
    expect(digits.transDateTime).toBe("20260101000000");
  });

  test("writes transDateTime as yyyymmddhhmmss even where settlements carry ISO 8601", () => {
    expect(card({}, { transactionTime: "iso8601" }).transDateTime).toBe("20261121010203");
  });

  test("never changes the facts", () => {
    const before = structuredClone(sale);
    card({}, { swipeTypes: "contact" });
    expect(sale).toEqual(before);
  });
});

describe("a settlement IPN", () => {
  test("has every field of the table with its value", () => {
    expect(renderIpn(settlement, settings, at)).toEqual({
      kind: "settlement",
      ipn: {
        ...settlement.fields,
        callbackUrl: at.callbackUrl,
        totalAmount: "40.00",
        transaction_time: "20261121010203",
        transaction_type: "SETTLE",
        settlementList: settlement.settlementList,
      },
    });
  });

  test("has its fields in the table's order, without signature", () => {
    const names = settlementIpnFields.map((field) => field.name).filter((name) => name !== "signature");
    expect(Object.keys(settle())).toEqual(names);
  });

  test("names the URL of the attempt, unless a switch gave one", () => {
    expect(settle().callbackUrl).toBe(at.callbackUrl);
    expect(settle({ callbackUrl: "https://other.example/x" }).callbackUrl).toBe("https://other.example/x");
  });

  test("totals Sales and Voids as the partner agreed, unless a switch gave the total", () => {
    expect(settle({}, { settlementTotal: "net" }).totalAmount).toBe("20.00");
    expect(settle({ totalAmount: "7" }, { settlementTotal: "net" }).totalAmount).toBe("7");
  });

  test("writes the time in the partner's zone, or as ISO 8601 UTC, or as a switch gave it", () => {
    expect(settle({}, { timeZone: "Asia/Ho_Chi_Minh" }).transaction_time).toBe("20261121080203");
    const iso = { transactionTime: "iso8601", timeZone: "Asia/Ho_Chi_Minh" } as const;
    expect(settle({}, iso).transaction_time).toBe("2026-11-21T01:02:03Z");
    expect(settle({ transaction_time: "20260101000000" }, iso).transaction_time).toBe("20260101000000");
    expect(settle({ transaction_time: "2026-11-21T08:02:03+07:00" }).transaction_time).toBe("20261121010203");
  });

  test("keeps the type that a switch gave, and follows the partner's map otherwise", () => {
    expect(settle({ transaction_type: "SALE" }).transaction_type).toBe("SALE");
    const transactionTypes = { ...settings.transactionTypes, SETTLEMENT: "VOID" } as const;
    expect(settle({}, { transactionTypes }).transaction_type).toBe("VOID");
  });
});

describe("total", () => {
  describe("totalAmount", () => {
    test.each([
      ["100.50", "20.25", "sum", "120.75"],
      ["100.50", "20.25", "net", "80.25"],
      ["150000", "50000", "sum", "200000"],
      ["150000", "50000", "net", "100000"],
      ["0.10", "0.20", "sum", "0.30"],
      ["10", "0.5", "sum", "10.5"],
      ["0.00", "0.00", "sum", "0.00"],
      ["5.00", "7.00", "net", "-2.00"],
      ["0.00", "0.05", "net", "-0.05"],
      ["9007199254740993", "1", "sum", "9007199254740994"],
    ] as const)("of %s and %s, %s, is %s", (sales, voids, which, total) => {
      expect(totalAmount(sales, voids, which)).toBe(total);
    });

    test.each(["", "abc", "1,000.00", "1e3", " 1", "1.", ".5"])(
      "is empty when a total is %j: none is better than a wrong one",
      (bad) => {
        expect(totalAmount(bad, "1.00", "sum")).toBe("");
        expect(totalAmount("1.00", bad, "net")).toBe("");
      },
    );

    test("is exact for any amounts", () => {
      const cents = fc.bigInt({ min: 0n, max: 10n ** 30n });
      const text = (minor: bigint) => minor.toString().padStart(3, "0").replace(/(..)$/, ".$1");
      fc.assert(
        fc.property(cents, cents, (sales, voids) => {
          expect(totalAmount(text(sales), text(voids), "sum")).toBe(text(sales + voids));
          if (sales >= voids) expect(totalAmount(text(sales), text(voids), "net")).toBe(text(sales - voids));
        }),
      );
    });
  });
});
