import { cardIpnFields, defaultSigning } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import type { CardFacts } from "../ipn/facts.ts";
import { beginFollowUp, beginSale, completeCard, followingAmountProblem } from "./card-facts.ts";
import { answer, approvals, numbers, originalFields, reqId, start } from "./original.fixture.ts";
import type { AcquirerOutcome } from "./outcome.ts";
import type { CardRequest, PreAuthCompleteRequest, SaleRequest, VoidRequest } from "./requests/request.ts";
import type { TerminalSequence } from "./terminal.ts";

const originalReqId = "original reqid";

describe("sale", () => {
  const card: CardRequest = {
    token: "tok_secret",
    number: "411111******1111",
    scheme: "VISA",
    aid: "A0000000031010",
    swipeType: "C",
    holder: "NGUYEN VAN A",
    expiry: "12/27",
    tc: "CARDTC",
  };
  const request: SaleRequest = {
    command: "SALE",
    reqId: "8F14E45F-ceea-467f-a8a6-3c7a0e2ab111",
    amount: "12.5",
    currency: "USD",
    tid: "T1",
    mid: "M1",
    merchantTransId: "MT-1",
    billId: "B-1",
    extraData: '{"a":1}',
    paymentType: "card_mobile",
    deviceId: "D-request",
    appName: "App of the request",
    card,
  };
  const terminal: TerminalSequence = {
    traceNo: "000042",
    invoiceNo: "000003",
    batchNo: "000007",
    merchantId: "MID-registered",
    merchantName: "Shop Ltd",
    merchantAddress: "1 Le Loi",
    deviceId: "D-registered",
    appName: "App registered",
  };
  const nothingRegistered = { merchantId: "", merchantName: "", merchantAddress: "", deviceId: "", appName: "" };
  const start = { id: "01980000-0000-7000-8000-000000000001", atMs: Date.parse("2026-11-21T01:02:03.456Z") };

  const begun = beginSale(request, terminal, start);

  describe("a Sale at INIT", () => {
    test("has every field of the IPN that is known before the acquirer is asked", () => {
      expect(begun).toEqual({
        kind: "card",
        command: "SALE",
        fields: {
          aid: "A0000000031010",
          amount: "12.5",
          appName: "App of the request",
          approveCode: "",
          batchNo: "000007",
          billId: "B-1",
          cardHolder: "NGUYEN VAN A",
          cardNumber: "411111******1111",
          cardScheme: "VISA",
          currency: "USD",
          deviceId: "D-request",
          expDate: "12/27",
          extraData: '{"a":1}',
          id: start.id,
          invoiceNo: "000003",
          isoResponseCode: "",
          merchantAddress: "1 Le Loi",
          merchantId: "MID-registered",
          merchantName: "Shop Ltd",
          merchantTransId: "MT-1",
          mid: "M1",
          paymentType: "card_mobile",
          refId: "",
          reqId: "8F14E45F-ceea-467f-a8a6-3c7a0e2ab111",
          status: "INIT",
          swipeType: "C",
          tc: "CARDTC",
          tid: "T1",
          traceNo: "000042",
          transDateTime: "2026-11-21T01:02:03.456Z",
        },
      });
    });

    test("leaves out nothing of the table but transaction_type and signature, which settings and keys make", () => {
      const made = new Set(["transaction_type", "signature"]);
      const names = cardIpnFields.map(({ name }) => name as string).filter((name) => !made.has(name));
      expect(Object.keys(begun.fields).sort()).toEqual(names.sort());
    });

    test("takes from the terminal what the request lacks, and mid for a merchantId that is not registered", () => {
      const bare = { ...request, deviceId: undefined, appName: "" };
      expect(beginSale(bare, terminal, start).fields).toMatchObject({
        deviceId: "D-registered",
        appName: "App registered",
      });
      expect(beginSale(bare, { ...terminal, ...nothingRegistered }, start).fields).toMatchObject({
        deviceId: "",
        appName: "",
        merchantId: "M1",
        merchantName: "",
      });
    });

    test("has the scheme of its AID, else of its RID, where the request names none, and card as paymentType", () => {
      const of = (aid: string | undefined) =>
        beginSale({ ...request, paymentType: undefined, card: { ...card, scheme: undefined, aid } }, terminal, start)
          .fields;
      expect(of("A0000000031010")).toMatchObject({ cardScheme: "VISA", paymentType: "card" });
      expect(of("A0000000041010")).toMatchObject({ cardScheme: "MASTER" });
      expect(of("A000000999101010")).toMatchObject({ cardScheme: "" });
      expect(of(undefined)).toMatchObject({ cardScheme: "", aid: "" });
    });

    test("never holds the card's token", () => {
      expect(JSON.stringify(begun)).not.toContain("tok_secret");
    });
  });
});

describe("void", () => {
  const request: VoidRequest = { command: "VOID", reqId, transactionId: "01980000-0000-7000-8000-000000000001" };
  const begin = (change: Partial<VoidRequest> = {}, voidsPreAuth = false) =>
    beginFollowUp(
      { ...request, ...change },
      { command: voidsPreAuth ? "PREAUTH" : "SALE", fields: originalFields },
      numbers,
      start,
    );

  const own = {
    id: start.id,
    reqId,
    traceNo: "000043",
    batchNo: "000008",
    transDateTime: "2026-11-21T01:02:03.456Z",
    status: "INIT",
    isoResponseCode: "",
    refId: "",
  };

  describe("a Void at INIT", () => {
    test("has its original's fields, and of its own what identifies it", () => {
      expect(begin()).toEqual({ kind: "card", command: "VOID", originalReqId, fields: { ...originalFields, ...own } });
    });

    test("has what it was given in place of what it would inherit, and takes an empty text for an absent one", () => {
      const given = { merchantTransId: "MT-2", billId: "B-2", extraData: "{}", deviceId: "D-2", appName: "App 2" };
      expect(begin(given).fields).toEqual({ ...originalFields, ...given, ...own });
      const empty = { merchantTransId: "", billId: "", extraData: "", deviceId: "", appName: "" };
      expect(begin(empty)).toEqual(begin());
    });

    test("of a PreAuth says so, and is in no batch", () => {
      expect(begin({}, true)).toMatchObject({ voidsPreAuth: true, fields: { batchNo: "" } });
      expect(begin()).not.toHaveProperty("voidsPreAuth");
    });

    test("never has the callBackUrl, neither its own nor its original's", () => {
      expect(JSON.stringify(begin({ callBackUrl: "https://partner.example/" }))).not.toContain("partner.example");
    });
  });
});

describe("preauth complete", () => {
  const request: PreAuthCompleteRequest = {
    command: "PREAUTH_COMPLETE",
    reqId,
    transactionId: "01980000-0000-7000-8000-000000000001",
    amount: "80.5",
    billId: "B-2",
  };
  const preAuth = { command: "PREAUTH", fields: { ...originalFields, batchNo: "" } } as const;
  const begun = beginFollowUp(request, preAuth, numbers, start);

  describe("a PreAuth-Complete at INIT", () => {
    test("has its PreAuth's fields, but its own amount as given, the open batch and what it was given", () => {
      expect(begun).toEqual({
        kind: "card",
        command: "PREAUTH_COMPLETE",
        originalReqId,
        fields: {
          ...originalFields,
          id: start.id,
          reqId,
          amount: "80.5",
          billId: "B-2",
          traceNo: "000043",
          batchNo: "000008",
          transDateTime: "2026-11-21T01:02:03.456Z",
          status: "INIT",
          isoResponseCode: "",
          refId: "",
        },
      });
    });
  });

  test("at another terminal it has that one's id, device and invoice number", () => {
    const elsewhere = { tid: "T9", deviceId: "D9", appName: "" };
    const { fields } = beginFollowUp(request, preAuth, { ...numbers, invoiceNo: "000077" }, start, elsewhere);
    expect(fields).toEqual({ ...begun.fields, ...elsewhere, invoiceNo: "000077" });
  });

  test("a Refund at INIT has neither the approval nor the cryptogram of its Sale", () => {
    const refund = beginFollowUp({ ...request, command: "REFUND" }, { ...preAuth, command: "SALE" }, numbers, start);
    expect(refund.fields).toEqual({ ...begun.fields, approveCode: "", tc: "" });
  });

  test("the amount is judged by the decimals of the PreAuth's currency", () => {
    expect(followingAmountProblem("80.5", "USD")).toBeUndefined();
    expect(followingAmountProblem("80.505", "KWD")).toBeUndefined();
    expect(followingAmountProblem("80.505", "USD")).toMatchObject({ field: "amount", code: "invalid_amount" });
    expect(followingAmountProblem("80.5", "VND")).toMatchObject({ field: "amount", code: "invalid_amount" });
  });
});

describe("complete card", () => {
  /** A follow-up at INIT, with what it inherited. */
  const begun: CardFacts = {
    kind: "card",
    command: "VOID",
    voidsPreAuth: true,
    fields: { ...originalFields, traceNo: "000043", status: "INIT", isoResponseCode: "", refId: "" },
  };
  const complete = (outcome: AcquirerOutcome, facts = begun) => completeCard(facts, outcome, defaultSigning);
  const answered = (changes: Partial<typeof answer>) =>
    complete({ kind: "answered", answer: { ...answer, ...changes }, approvals }).facts.fields;

  test("is SUCCESS for 00, with the acquirer's approveCode, refId and tc, and all else as at INIT", () => {
    const completed = complete({ kind: "answered", answer, approvals });
    expect(completed).toMatchObject({ state: "SUCCESS", reverse: false, warnings: [] });
    const { approveCode, refId, tc } = answer;
    const own = { status: "SUCCESS", isoResponseCode: "00", approveCode, refId, tc };
    expect(completed.facts).toEqual({ ...begun, fields: { ...begun.fields, ...own } });
  });

  test("has the approved part as its amount, with its currency's decimals", () => {
    const part = { ...answer, responseCode: "10", approvedMinor: 1_250n };
    const facts = { ...begun, fields: { ...begun.fields, currency: "USD", amount: "25.00" } };
    const completed = complete({ kind: "answered", answer: part, approvals, allowPartial: true }, facts);
    expect(completed).toMatchObject({ state: "SUCCESS", amountMinor: 1_250n, facts: { fields: { amount: "12.50" } } });
  });

  test("keeps its original's approveCode, and its card's tc, where the acquirer sends none", () => {
    expect(answered({ approveCode: "", tc: "" })).toMatchObject({
      approveCode: "original approveCode",
      tc: "original tc",
    });
  });

  test("has no refId where the acquirer sends none", () => {
    expect(answered({ refId: "" })).toMatchObject({ refId: "" });
  });

  test("keeps the acquirer's own approveCode and refId where it fails, never its original's", () => {
    expect(answered({ responseCode: "51", approveCode: "" })).toMatchObject({ approveCode: "", refId: answer.refId });
    expect(answered({ responseCode: "10" })).toMatchObject({ approveCode: "A1B2C3", refId: answer.refId });
    expect(complete({ kind: "no_answer" }).facts.fields).toMatchObject({ approveCode: "", refId: "" });
  });

  test.each([
    [{ kind: "answered", answer: { ...answer, responseCode: "51" }, approvals }, "51", false],
    [{ kind: "answered", answer: { ...answer, responseCode: "10" }, approvals }, "10", true],
    [{ kind: "no_answer" }, "68", true],
    [{ kind: "not_sent" }, "91", false],
    [{ kind: "instance_gone" }, "96", true],
  ] as const)("%j is ERROR %s, reversed: %s", (outcome, isoResponseCode, reverse) => {
    const completed = complete(outcome);
    expect(completed).toMatchObject({ state: "ERROR", reverse });
    expect(completed.facts.fields).toMatchObject({ status: "ERROR", isoResponseCode, traceNo: "000043" });
  });
});
