import { defaultSigning } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { requestProblems } from "./check.ts";
import type { CardRequest, CommandRequest, SaleRequest } from "./request.ts";
import { exemptDevice, type RuleContext } from "./rules.ts";

const context: RuleContext = { signing: defaultSigning };
const reqId = "8f14e45f-ceea-467f-a8a6-3c7a0e2ab111";

const card: CardRequest = {
  token: "tok_approve",
  number: "411111******1111",
  scheme: "VISA",
  aid: "A0000000031010",
  swipeType: "C",
  holder: "NGUYEN VAN A",
  expiry: "12/27",
  tc: "0123456789ABCDEF",
};

const sale: SaleRequest = {
  command: "SALE",
  reqId,
  amount: "150000",
  currency: "VND",
  tid: "T0000001",
  mid: "M00000000000001",
  merchantTransId: "MT-1",
  billId: "B-1",
  extraData: '{"table":7}',
  paymentType: "card",
  deviceId: "D-1",
  appName: "Shop",
  callBackUrl: "https://partner.example/ipn?a=1&b=2",
  card,
};

function found(request: CommandRequest, change: Partial<RuleContext> = {}): string[] {
  return requestProblems(request, { ...context, ...change }).map(({ field, code }) => `${field} ${code}`);
}
const saleWith = (change: Partial<SaleRequest>) => found({ ...sale, ...change });
const cardWith = (change: Partial<CardRequest>, over: Partial<SaleRequest> = {}) =>
  found({ ...sale, ...over, card: { ...card, ...change } });

describe("a Sale", () => {
  test("with every field as it should be has no problem, and neither has one with the required fields alone", () => {
    expect(found(sale)).toEqual([]);
    const { amount, currency, tid, mid, merchantTransId } = sale;
    const { token, number } = card;
    const least = { command: "SALE", reqId, amount, currency, tid, mid, merchantTransId } as const;
    expect(found({ ...least, card: { token, number, swipeType: "M" } })).toEqual([]);
  });

  test("needs the card's number and swipeType, but for a payment type without a card", () => {
    const bare = { ...sale, card: { token: "tok_approve" } };
    expect(found(bare)).toEqual(["card.number missing_field", "card.swipeType missing_field"]);
    expect(found({ ...bare, paymentType: "card_mobile" })).toEqual([
      "card.number missing_field",
      "card.swipeType missing_field",
    ]);
    for (const paymentType of ["qrmo", "qrmo_api"]) expect(found({ ...bare, paymentType })).toEqual([]);
    expect(found({ ...bare, paymentType: "qrmo", card: { token: "t", number: "4111" } })).toEqual([
      "card.number invalid_card_number",
    ]);
  });

  test("gets all of its problems at once", () => {
    const problems = found({
      ...sale,
      reqId: "1",
      amount: "-1",
      currency: "usd",
      tid: "",
      merchantTransId: "a&b",
      billId: "\ud800",
      extraData: "4111 1111 1111 1111",
      paymentType: "cash",
      callBackUrl: "https://partner.example/\0",
      card: { token: "", number: "4111", scheme: "MASTER", aid: "A0000000031010", swipeType: "Z", expiry: "13/27" },
    });
    expect(problems.sort()).toEqual([
      "amount invalid_amount",
      "billId invalid_text",
      "callBackUrl invalid_text",
      "card.expiry invalid_value",
      "card.number invalid_card_number",
      "card.scheme scheme_contradicts_aid",
      "card.swipeType invalid_value",
      "card.token missing_field",
      "currency invalid_currency",
      "extraData card_number_in_clear",
      "merchantTransId delimiter_in_signed_field",
      "paymentType invalid_value",
      "reqId invalid_req_id",
      "tid missing_field",
    ]);
  });

  test.each(["amount", "currency", "tid", "mid", "merchantTransId", "reqId"] as const)("needs a %s", (field) => {
    expect(saleWith({ [field]: "" })).toEqual([`${field} missing_field`]);
  });

  test("takes an empty text for an absent one", () => {
    expect(
      saleWith({ billId: "", extraData: "", paymentType: "", deviceId: "", appName: "", callBackUrl: "" }),
    ).toEqual([]);
    expect(cardWith({ scheme: "", holder: "", expiry: "", tc: "" })).toEqual([]);
  });

  test.each([
    ["8f14e45f-ceea-467f-a8a6-3c7a0e2ab111", []],
    ["8F14E45F-CEEA-467F-A8A6-3C7A0E2AB111", []],
    ["8f14e45f-ceea-167f-a8a6-3c7a0e2ab111", ["reqId invalid_req_id"]],
    ["8f14e45f-ceea-467f-c8a6-3c7a0e2ab111", ["reqId invalid_req_id"]],
    ["8f14e45fceea467fa8a63c7a0e2ab111", ["reqId invalid_req_id"]],
  ])("with the reqId %s: %j", (value, problems) => {
    expect(saleWith({ reqId: value })).toEqual(problems);
  });

  test("has the decimals of its currency", () => {
    expect(saleWith({ amount: "12.50", currency: "USD" })).toEqual([]);
    expect(saleWith({ amount: "12.500", currency: "KWD" })).toEqual([]);
    expect(saleWith({ amount: "12.50", currency: "VND" })).toEqual(["amount invalid_amount"]);
    expect(saleWith({ amount: "12.500", currency: "USD" })).toEqual(["amount invalid_amount"]);
    expect(saleWith({ currency: "XXX" })).toEqual(["currency invalid_currency"]);
  });

  test("may hold delimiters where the partner signs the whole IPN, but NUL nowhere", () => {
    const whole = { signing: { mode: "whole" } } as const;
    expect(found({ ...sale, merchantTransId: "a&b\n" }, whole)).toEqual([]);
    expect(found({ ...sale, merchantTransId: "a\0" }, whole)).toEqual(["merchantTransId invalid_text"]);
    expect(saleWith({ merchantTransId: "a\0" })).toEqual(["merchantTransId invalid_text"]);
  });

  test("has at most 4,096 bytes of extraData, however few characters that is", () => {
    expect(saleWith({ extraData: "x".repeat(4_096) })).toEqual([]);
    expect(saleWith({ extraData: "ở".repeat(1_365) })).toEqual([]);
    expect(saleWith({ extraData: "ở".repeat(1_366) })).toEqual(["extraData too_long"]);
  });

  test("has its callBackUrl judged elsewhere, by the partner's addresses", () => {
    expect(saleWith({ callBackUrl: "http://localhost:7421/ipn" })).toEqual([]);
  });
});

describe("the card", () => {
  test.each([
    ["C", "card", ["card.aid aid_required"]],
    ["CTL", "card", ["card.aid aid_required"]],
    ["CL", "card", ["card.aid aid_required"]],
    ["CLS", "card", ["card.aid aid_required"]],
    ["C", "", ["card.aid aid_required"]],
    ["C", "card_api", []],
    ["CTL", "qrmo", []],
    ["M", "card", []],
    ["S", "card", []],
    ["F", "card", []],
  ])("without an AID, swipeType %s and paymentType %j: %j", (swipeType, paymentType, problems) => {
    expect(cardWith({ aid: "", swipeType }, { paymentType })).toEqual(problems);
  });

  test.each([
    ["A0000000041010", "MASTER", []],
    ["A0000000041010", "VISA", ["card.scheme scheme_contradicts_aid"]],
    ["a0000000031010", "VISA", []],
    ["A000000999101010", "UPI", []],
    ["A0000000031010", "visa", ["card.scheme invalid_value"]],
    ["A0000000031010", "NAPAS", ["card.scheme invalid_value"]],
    ["A00000000", "VISA", ["card.aid invalid_value"]],
    ["not hexadecimal", "VISA", ["card.aid invalid_value"]],
  ])("with the AID %s and the scheme %s: %j", (aid, scheme, problems) => {
    expect(cardWith({ aid, scheme })).toEqual(problems);
  });

  test.each(["12/27", "01/2030", "2030-01", "1227", "2712", "**/**", "XXXX"])("expires %s", (expiry) => {
    expect(cardWith({ expiry })).toEqual([]);
  });

  test.each(["13/27", "00/27", "1399", "2027", "12-27", "Dec 27", "122"])("does not expire %s", (expiry) => {
    expect(cardWith({ expiry })).toEqual(["card.expiry invalid_value"]);
  });
});

describe("a full card number", () => {
  const pan = "4111111111111111";

  test.each([
    "amount",
    "tid",
    "mid",
    "merchantTransId",
    "billId",
    "extraData",
    "deviceId",
    "appName",
    "callBackUrl",
  ] as const)("is found in %s, and not repeated", (field) => {
    const value = field === "callBackUrl" ? `https://partner.example/${pan}` : pan;
    const problems = requestProblems({ ...sale, [field]: value }, context);
    expect(problems.map(({ field: at, code }) => `${at} ${code}`)).toContain(`${field} card_number_in_clear`);
    expect(JSON.stringify(problems)).not.toContain(pan);
  });

  test.each(["token", "number", "holder", "tc"] as const)("is found in card.%s, and not repeated", (field) => {
    const problems = requestProblems({ ...sale, card: { ...card, [field]: pan } }, context);
    expect(problems.map(({ field: at, code }) => `${at} ${code}`)).toContain(`card.${field} card_number_in_clear`);
    expect(JSON.stringify(problems)).not.toContain(pan);
  });

  test("is none by chance in what the POS encrypted", () => {
    const encrypted = `AA${pan}AA`;
    expect(cardWith({ track2: encrypted, pinBlock: pan, emv: encrypted })).toEqual([]);
  });

  test("is none by chance in the certificate that a chip computed", () => {
    const certificate = "A4769561277175E8";
    expect(cardWith({ tc: certificate })).toEqual([]);
    expect(cardWith({ tc: "378282246310005F" })).toEqual(["card.tc card_number_in_clear"]);
    expect(cardWith({ holder: certificate })).toEqual(["card.holder card_number_in_clear"]);
  });

  test("is not what a device id is that the operator registered, and no other field is exempt", async () => {
    const pan15 = "378282246310005";
    const problems = requestProblems({ ...sale, deviceId: pan15, billId: pan15 }, context);
    const codes = async (isRegistered: boolean) =>
      (await exemptDevice(problems, async () => isRegistered)).map(({ field, code }) => `${field} ${code}`);
    expect(await codes(true)).toEqual(["billId card_number_in_clear"]);
    expect((await codes(false)).sort()).toEqual(["billId card_number_in_clear", "deviceId card_number_in_clear"]);
    const unasked = () => Promise.reject(new Error("the registration decides nothing"));
    expect(await exemptDevice(requestProblems({ ...sale, billId: pan15 }, context), unasked)).toHaveLength(1);
  });
});

describe("the other commands", () => {
  const transactionId = "01980000-0000-7000-8000-000000000001";

  test.each<CommandRequest>([
    { command: "VOID", reqId, transactionId },
    { command: "PREAUTH_COMPLETE", reqId, transactionId, amount: "12.505" },
    { command: "SETTLEMENT", reqId, tid: "T1", mid: "M1" },
    { command: "LOGON", reqId, tid: "T1", mid: "M1" },
    { command: "BATCH_UPLOAD", reqId, tid: "T1", mid: "M1" },
    { command: "REVERSAL", reqId, transactionId },
    { command: "REVERSAL", reqId, originalReqId: reqId },
    { ...sale, command: "PREAUTH" },
  ])("$command as it should be has no problem", (request) => {
    expect(found(request)).toEqual([]);
  });

  test.each<[CommandRequest, string[]]>([
    [{ command: "VOID", reqId, transactionId: "" }, ["transactionId missing_field"]],
    [{ command: "VOID", reqId, transactionId, merchantTransId: "a&b" }, ["merchantTransId delimiter_in_signed_field"]],
    [{ command: "PREAUTH_COMPLETE", reqId, transactionId, amount: "0" }, ["amount invalid_amount"]],
    [{ command: "SETTLEMENT", reqId, tid: "a&b", mid: "M1" }, ["tid delimiter_in_signed_field"]],
    [{ command: "SETTLEMENT", reqId, tid: "T1", mid: "M1", merchantTransId: "a&b" }, []],
    [{ command: "LOGON", reqId, tid: "T\n1", mid: "M1" }, ["tid delimiter_in_signed_field"]],
    [{ command: "REVERSAL", reqId }, ["transactionId missing_field"]],
    [{ command: "REVERSAL", reqId, transactionId, originalReqId: reqId }, ["originalReqId invalid_value"]],
    [{ command: "REVERSAL", reqId, originalReqId: "1" }, ["originalReqId invalid_req_id"]],
    [{ command: "VOID", reqId, transactionId: "4111111111111111" }, ["transactionId card_number_in_clear"]],
  ])("%j: %j", (request, problems) => {
    expect(found(request)).toEqual(problems);
  });
});
