import { cardIpnFields } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import type { CardRequest, SaleRequest } from "./request.ts";
import { beginSale } from "./sale.ts";
import type { TerminalSequence } from "./terminal.ts";

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
