import { cardIpnFields, defaultSigning, settlementIpnFields } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { completionProblems, completionWarnings, isReportedTime, redactItem } from "./check-completion.ts";
import type { CompletionRequest } from "./completion.ts";

const context = {};

const sale: CompletionRequest = {
  partnerId: "01980000-0000-7000-8000-000000000009",
  externalId: "SW-1",
  command: "SALE",
  originalExternalId: "SW-0",
  callBackUrl: "https://partner.example/ipn",
  aid: "A0000000031010",
  amount: "150000",
  appName: "Shop",
  approveCode: "A1B2C3",
  batchNo: "000007",
  billId: "B-1",
  cardHolder: "NGUYEN VAN A",
  cardNumber: "411111******1111",
  cardScheme: "Visa",
  currency: "VND",
  deviceId: "D-1",
  expDate: "12/27",
  extraData: '{"a":1}',
  id: "01980000-0000-7000-8000-000000000001",
  invoiceNo: "000003",
  isoResponseCode: "00",
  merchantAddress: "1 Le Loi",
  merchantId: "M1",
  merchantName: "Shop & Sons",
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
  transDateTime: "20261121010203",
  transaction_type: "SALE",
};

const settlement: CompletionRequest = {
  partnerId: sale.partnerId,
  externalId: "SW-2",
  command: "SETTLEMENT",
  batchNo: "000007",
  callbackUrl: "https://partner.example/ipn",
  deviceId: "D-1",
  extraData: "",
  id: "01980000-0000-7000-8000-000000000002",
  merchantTransId: "MT-2",
  mid: "M1",
  quantity: "2",
  reqId: "",
  saleQuantity: "3",
  saleTotalAmount: "30.00",
  status: "SUCCESS",
  tid: "T1",
  currency: "USD",
  totalAmount: "40.00",
  transaction_time: "2026-11-21T01:02:03Z",
  transaction_type: "SETTLE",
  voidQuantity: "1",
  voidTotalAmount: "10.00",
  settlementList: [
    { reqId: "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111", refNo: "123456789012" },
    { reqId: "8f14e45f-ceea-467f-a8a6-3c7a0e2ab112", refNo: "123456789012" },
  ],
};

function found(completion: CompletionRequest, change: Partial<typeof context> = {}): string[] {
  return completionProblems(completion, { ...context, ...change }).map(({ field, code }) => `${field} ${code}`);
}
const saleWith = (change: Partial<CompletionRequest>) => found({ ...sale, ...change });
const one = { quantity: "1", voidQuantity: "2" };
const settlementWith = (change: Partial<CompletionRequest>) => found({ ...settlement, ...change });

describe("a report", () => {
  test("with every field of its table has no problem", () => {
    expect(found(sale)).toEqual([]);
    expect(found(settlement)).toEqual([]);
    expect(Object.keys(sale)).toEqual(
      expect.arrayContaining(cardIpnFields.map(({ name }) => name as string).filter((name) => name !== "signature")),
    );
    expect(Object.keys(settlement)).toEqual(
      expect.arrayContaining(
        settlementIpnFields.map(({ name }) => name as string).filter((name) => name !== "signature"),
      ),
    );
  });

  test("needs no more than partner, ids, command and result", () => {
    const { partnerId, externalId } = sale;
    expect(found({ partnerId, externalId, command: "SALE", status: "SUCCESS", isoResponseCode: "00" })).toEqual([]);
    expect(found({ partnerId, externalId, command: "VOID", status: "ERROR", isoResponseCode: "51" })).toEqual([]);
    expect(found({ partnerId, externalId, command: "SETTLEMENT", status: "ERROR" })).toEqual([]);
    expect(found({ partnerId, externalId, command: "LOGON", status: "SUCCESS", isoResponseCode: "00" })).toEqual([]);
  });

  test.each(["SALEE", "sale", "REFUND", "__proto__"])(
    "of the unknown command %j is not taken for a silent one",
    (command) => {
      const { partnerId, externalId } = sale;
      const unknown = { partnerId, externalId, command, status: "SUCCESS", isoResponseCode: "00" } as CompletionRequest;
      expect(found(unknown)).toEqual(["command invalid_value"]);
    },
  );

  test.each([
    ["SUCCESS", "00", []],
    ["ERROR", "51", []],
    ["ERROR", "Z3", []],
    ["SUCCESS", "51", ["status invalid_value"]],
    ["ERROR", "00", ["status invalid_value"]],
    ["INIT", "00", ["status invalid_value"]],
    ["success", "00", ["status invalid_value"]],
    ["", "00", ["status missing_field"]],
    ["SUCCESS", "", ["isoResponseCode missing_field"]],
  ])("of status %j with code %j: %j", (status, isoResponseCode, problems) => {
    expect(saleWith({ status, isoResponseCode })).toEqual(problems);
  });

  test("has no field of the other table", () => {
    expect(saleWith({ saleTotalAmount: "1" })).toEqual(["saleTotalAmount unknown_field"]);
    expect(saleWith({ settlementList: [] })).toEqual(["settlementList unknown_field"]);
    expect(settlementWith({ isoResponseCode: "00" })).toEqual(["isoResponseCode unknown_field"]);
    expect(settlementWith({ cardNumber: "" })).toEqual(["cardNumber unknown_field"]);
  });

  test("may have & and control characters, with a warning to the operator, but no NUL and no half of a pair", () => {
    const odd = { ...sale, merchantTransId: "a&b", tid: "T\n1", billId: "c&d" };
    expect(found(odd)).toEqual([]);
    const warnings = completionWarnings(odd, { signing: defaultSigning });
    expect(warnings.map(({ field, code }) => `${field} ${code}`).sort()).toEqual([
      "merchantTransId delimiter_in_signed_field",
      "tid delimiter_in_signed_field",
    ]);
    expect(completionWarnings(odd, { signing: { mode: "whole" } })).toEqual([]);
    expect(saleWith({ merchantName: "a\0" })).toEqual(["merchantName invalid_text"]);
    expect(saleWith({ externalId: "\ud800" })).toEqual(["externalId invalid_text"]);
    expect(settlementWith({ ...one, settlementList: [{ reqId: "", refNo: "\0" }] })).toEqual([
      "settlementList[0].refNo invalid_text",
    ]);
  });

  test("has no full card number anywhere, but for a registered device", () => {
    for (const name of ["externalId", "cardNumber", "extraData", "merchantTransId", "tc", "refId"] as const) {
      const problems = completionProblems({ ...sale, [name]: "4111111111111111" }, context);
      expect(problems.map(({ field, code }) => `${field} ${code}`)).toContain(`${name} card_number_in_clear`);
      expect(JSON.stringify(problems)).not.toContain("4111");
    }
    for (const reqId of ["", "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111"]) {
      expect(settlementWith({ ...one, settlementList: [{ reqId, refNo: "4111111111111111" }] })).toEqual([
        "settlementList[0].refNo card_number_in_clear",
      ]);
    }
    expect(settlementWith({ ...one, settlementList: [{ reqId: "4111 1111 1111 1111", refNo: "" }] })).toEqual([
      "settlementList[0].reqId card_number_in_clear",
    ]);
    expect(
      settlementWith({ ...one, settlementList: [{ reqId: "41111111-1111-4111-8111-111111111111", refNo: "" }] }),
    ).toEqual([]);
    expect(saleWith({ deviceId: "378282246310005" })).toEqual(["deviceId card_number_in_clear"]);
  });

  test.each<[Partial<CompletionRequest>, string[]]>([
    [{ partnerId: "1" }, ["partnerId unknown_partner"]],
    [{ externalId: "" }, ["externalId missing_field"]],
    [{ id: "17" }, ["id invalid_value"]],
    [{ reqId: "17" }, ["reqId invalid_req_id"]],
    [{ reqId: "" }, []],
    [{ callBackUrl: "http://partner.example/" }, []],
    [{ amount: "1,000" }, ["amount invalid_amount"]],
    [{ amount: "1.50" }, ["amount invalid_amount"]],
    [{ amount: "1.50", currency: "" }, []],
    [{ currency: "705" }, ["currency invalid_currency"]],
    [{ amount: "0" }, ["amount invalid_amount"]],
    [{ amount: "0", status: "ERROR", isoResponseCode: "05" }, []],
    [{ amount: "0.00", currency: "USD", status: "ERROR", isoResponseCode: "85" }, []],
    [{ amount: "1234567890123" }, ["amount invalid_amount"]],
    [{ cardNumber: "4111111111111*", paymentType: "" }, ["cardNumber invalid_card_number"]],
    [{ swipeType: "X" }, ["swipeType invalid_value"]],
    [{ paymentType: "cash" }, ["paymentType invalid_value"]],
    [{ transaction_type: "REFUND" }, ["transaction_type invalid_value"]],
    [{ transaction_type: "CANCEL" }, []],
    [{ transaction_type: "" }, []],
    [{ transDateTime: "20260230000000" }, ["transDateTime invalid_value"]],
    [{ transDateTime: "2026-11-21T08:02:03+07:00" }, []],
    [{ transDateTime: "" }, []],
    [{ extraData: "ở".repeat(1_400) }, ["extraData too_long"]],
  ])("of a Sale with %j: %j", (change, problems) => {
    expect(saleWith(change)).toEqual(problems);
  });

  test("of amounts in their currency's smallest unit names that, unless they are zero in any", () => {
    const inMinor = ({ currency: _, ...completion }: CompletionRequest, change: Partial<CompletionRequest> = {}) =>
      completionProblems({ ...completion, ...change }, { amounts: "minor" }).map(
        ({ field, code }) => `${field} ${code}`,
      );
    const missing = ["currency missing_field"];
    const totals = { saleTotalAmount: "3000", voidTotalAmount: "1000", totalAmount: "4000" };
    const unnamed = [inMinor(sale), inMinor(settlement, totals), inMinor(sale, { currency: "" })];
    expect(unnamed).toEqual([missing, missing, missing]);
    const none = { saleQuantity: "0", voidQuantity: "0", quantity: "0", settlementList: [] };
    const zero = { saleTotalAmount: "0", voidTotalAmount: "0", totalAmount: "0" };
    expect([inMinor(sale, { amount: "" }), inMinor(settlement, { ...none, ...zero })]).toEqual([[], []]);
    expect(inMinor(settlement), "a point shows the major unit").toEqual([]);
    expect(completionProblems(sale, { amounts: "minor" })).toEqual([]);
  });

  test("may be of the amount zero where verified cards are reported so", () => {
    const verified = { ...sale, amount: "0" };
    expect(completionProblems(verified, { ...context, zeroAmounts: "any" })).toEqual([]);
    expect(completionProblems(verified, { ...context, zeroAmounts: "declined" })).toHaveLength(1);
  });

  test.each<[Partial<CompletionRequest>, string[]]>([
    [{ transaction_type: "CANCEL" }, ["transaction_type invalid_value"]],
    [{ transaction_time: "yesterday" }, ["transaction_time invalid_value"]],
    [{ status: "DONE" }, ["status invalid_value"]],
    [{ saleTotalAmount: "1.000,00" }, ["saleTotalAmount invalid_amount"]],
    [{ voidTotalAmount: "-1" }, ["voidTotalAmount invalid_amount"]],
    [{ totalAmount: "40.001" }, ["totalAmount invalid_amount"]],
    [{ totalAmount: "40.001", currency: "KWD" }, []],
    [{ totalAmount: "" }, []],
    [{ saleTotalAmount: "9".repeat(17), voidTotalAmount: "0" }, []],
    [{ quantity: "-1" }, ["quantity invalid_value"]],
    [{ quantity: "3" }, ["quantity invalid_value"]],
    [{ quantity: "" }, []],
    [{ quantity: "", voidQuantity: "9", settlementList: undefined }, ["voidQuantity invalid_value"]],
    [{ quantity: "0", saleQuantity: "1", voidQuantity: "2", status: "ERROR" }, ["voidQuantity invalid_value"]],
    [{ saleQuantity: "3.0" }, ["saleQuantity invalid_value"]],
    [{ settlementList: [] }, ["settlementList invalid_value"]],
    [{ settlementList: undefined, quantity: "3", voidQuantity: "0", voidTotalAmount: undefined }, []],
    [{ settlementList: [], status: "ERROR" }, []],
    [
      { saleQuantity: "", saleTotalAmount: "", voidQuantity: undefined, voidTotalAmount: "" },
      [
        "saleQuantity missing_field",
        "saleTotalAmount missing_field",
        "voidQuantity missing_field",
        "voidTotalAmount missing_field",
      ],
    ],
    [{ saleQuantity: "", saleTotalAmount: "", voidQuantity: "", voidTotalAmount: "", status: "ERROR" }, []],
    [{ currency: "XXX" }, ["currency invalid_currency"]],
  ])("of a Settlement with %j: %j", (change, problems) => {
    expect(settlementWith(change)).toEqual(problems);
  });

  test("of a list that is bad throughout says so a hundred times, not fifty thousand", () => {
    const settlementList = Array.from({ length: 5_000 }, () => ({ reqId: "", refNo: "\0" }));
    const counts = { quantity: "5000", saleQuantity: "5001" };
    expect(settlementWith({ ...counts, settlementList })).toHaveLength(100);
  });
});

describe("reported time", () => {
  test.each([
    "20261121010203",
    "20240229235959",
    "20000229000000",
    "2026-11-21T01:02:03Z",
    "2026-11-21T01:02:03.456Z",
    "2026-11-21T08:02:03+07:00",
  ])("%s is a time", (text) => {
    expect(isReportedTime(text)).toBe(true);
  });

  test.each([
    "20260229000000",
    "19000229000000",
    "20261301000000",
    "20260001000000",
    "20260100000000",
    "20260431000000",
    ...["01", "03", "05", "07", "08", "10", "12"].map((month) => `2026${month}32000000`),
    "20261121240000",
    "20261121006000",
    "20261121000060",
    "2026112101020",
    "202611210102033",
    "2026-11-21 01:02:03",
    "2026-11-21T01:02:03",
    "2026-02-30T01:02:03Z",
    "2026-11-21T01:02:03+25:00",
    "21/11/2026",
    "1795222923000",
  ])("%s is none", (text) => {
    expect(isReportedTime(text)).toBe(false);
  });
});

test("an item is kept whole", () => {
  const item = { externalId: "SW-1", amount: 5, settlementList: [{ reqId: "r", refNo: "1" }], more: null, on: true };
  expect(redactItem(item)).toEqual(item);
});

test("but for full card numbers, wherever they stand", () => {
  const pan = "4111 1111-1111 1111";
  const item = { tc: pan, list: [{ refNo: pan }], [pan]: "x", number: 4111111111111111, text: JSON.stringify({ pan }) };
  const text = JSON.stringify(redactItem(item));
  expect(text).not.toMatch(/4111/);
  expect(text.match(/holds what looks like card data/g)).toHaveLength(5);
});

test("and for security codes, PINs and tracks, by their names", () => {
  const card = { cvvCode: "123", card_cvv: 123, track2: ";4111111111111112=25121010000?", pin: "1234" };
  const text = JSON.stringify(redactItem({ card, ...card, note: "cvv 123", amount: "123" }));
  expect(text).not.toMatch(/25121010000|1234|"123"(?!})|:123/);
  expect(text).toContain('"amount":"123"');
  expect(text.match(/holds what looks like card data/g)).toHaveLength(9);
});

test("and bounded: long texts, lists, and what is nested deeply", () => {
  const nested = JSON.parse(`${'{"a":'.repeat(20)}1${"}".repeat(20)}`);
  const list = Array.from({ length: 50_000 }, (_, at) => ({ reqId: String(at) }));
  const kept = redactItem({ list, text: "x".repeat(100_000), nested }) as { list: unknown[] };
  expect(kept.list).toHaveLength(101);
  expect(kept.list.at(-1)).toBe("(49900 more)");
  expect(JSON.stringify(kept).length).toBeLessThan(10_000);
});

test("and storable: NUL and half of a surrogate pair are replaced", () => {
  expect(redactItem({ a: "x\0", b: "\ud800" })).toEqual({ a: "x\ufffd", b: "\ufffd" });
});
