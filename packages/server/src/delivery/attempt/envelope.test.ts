import { ciphers, encodings, openAndVerify, webhookSignatureMatches } from "@paybell/contract";
import { describe, expect, test } from "vitest";
import { type NotificationId, newId, type TransactionId } from "../../ids.ts";
import type { IpnFacts } from "../../ipn/facts.ts";
import { partnerSnapshot } from "../../partners/partner.fixture.ts";
import type { Partner } from "../../partners/partner.ts";
import { type EnvelopeFor, makeEnvelope } from "./envelope.ts";

const sale: IpnFacts = {
  kind: "card",
  command: "SALE",
  fields: {
    id: "t-1",
    amount: "150000",
    currency: "VND",
    status: "SUCCESS",
    isoResponseCode: "00",
    extraData: '{"ghế":"số 7"}',
  },
};
const settlement: IpnFacts = {
  kind: "settlement",
  command: "SETTLEMENT",
  fields: { id: "s-1", saleTotalAmount: "10", voidTotalAmount: "2", status: "SUCCESS" },
  settlementList: [{ reqId: "r", refNo: "1" }],
  currency: "USD",
};

function attempt(given: Partial<EnvelopeFor> = {}): EnvelopeFor {
  return {
    notificationId: newId() as NotificationId,
    command: "SALE",
    originalId: null,
    attemptNo: 1,
    callbackUrl: "https://callback.test/ipn",
    outOfOrder: false,
    nowMs: 1_750_000_000_999,
    ...given,
  };
}

function opened(partner: Partner, body: Buffer) {
  const { settings, keys } = partner;
  return openAndVerify(body.toString(), {
    sealing: settings,
    signing: settings.signing,
    encryptionKeys: [keys.encryption],
    signingKeys: [keys.signing.key],
  });
}

describe("an envelope", () => {
  test.each(ciphers.flatMap((cipher) => encodings.map((encoding) => [cipher, encoding] as const)))(
    "sealed with %s in %s opens to the same IPN",
    (cipher, encoding) => {
      const partner = partnerSnapshot({ cipher, encoding });
      const { body, keyId } = makeEnvelope(JSON.stringify(sale), partner, attempt());
      const { ipn, kind } = opened(partner, body);
      expect(kind).toBe("card");
      expect(ipn).toMatchObject({ ...sale.fields, transaction_type: "SALE" });
      expect(keyId).toBe(partner.keys.encryption.id);
    },
  );

  test.each(["table", "sample"] as const)("with %s names is signed as it stands on the wire", (wireNames) => {
    for (const signing of [{ mode: "fields" }, { mode: "whole" }] as const) {
      const partner = partnerSnapshot({ wireNames, signing });
      const { body } = makeEnvelope(JSON.stringify(settlement), partner, attempt({ command: "SETTLEMENT" }));
      const { ipn, wire } = opened(partner, body);
      expect(ipn).toMatchObject({
        callbackUrl: "https://callback.test/ipn",
        settlementList: settlement.settlementList,
      });
      expect("deviceID" in wire).toBe(wireNames === "sample");
    }
  });

  test("differs each time, under the same id", () => {
    const partner = partnerSnapshot();
    const at = attempt();
    const [first, second] = [
      makeEnvelope(JSON.stringify(sale), partner, at),
      makeEnvelope(JSON.stringify(sale), partner, at),
    ];
    expect(first.body).not.toEqual(second.body);
    expect(first.headers["webhook-id"]).toBe(second.headers["webhook-id"]);
  });

  // The bytes of version 0.1.0: a partner that compares them must never see another.
  test("has by default the specification's fields alone, byte for byte", () => {
    const partner = partnerSnapshot();
    const originalId = newId() as TransactionId;
    const textOf = (facts: IpnFacts) => {
      const { body } = makeEnvelope(JSON.stringify(facts), partner, attempt({ originalId, originalReqId: "r-1" }));
      const { wire, signedText } = opened(partner, body);
      return [JSON.stringify({ ...wire, signature: "" }), signedText];
    };
    expect(textOf(sale)).toEqual([
      '{"aid":"","amount":"150000","appName":"","approveCode":"","batchNo":"","billId":"","cardHolder":"",' +
        '"cardNumber":"","cardScheme":"","currency":"VND","deviceId":"","expDate":"",' +
        '"extraData":"{\\"ghế\\":\\"số 7\\"}","id":"t-1","invoiceNo":"","isoResponseCode":"00","merchantAddress":"",' +
        '"merchantId":"","merchantName":"","merchantTransId":"","mid":"","paymentType":"","refId":"","reqId":"",' +
        '"status":"SUCCESS","swipeType":"","tc":"","tid":"","traceNo":"","transDateTime":"",' +
        '"transaction_type":"SALE","signature":""}',
      "aid=&amount=150000&approveCode=&isoResponseCode=00&merchantTransId=&isoResponseCode=00&cardScheme=&tid=&mid=" +
        "&traceNo=&batchNo=",
    ]);
    expect(textOf(settlement)).toEqual([
      '{"batchNo":"","callbackUrl":"https://callback.test/ipn","deviceId":"","extraData":"","id":"s-1",' +
        '"merchantTransId":"","mid":"","quantity":"","reqId":"","saleQuantity":"","saleTotalAmount":"10",' +
        '"status":"SUCCESS","tid":"","totalAmount":"12","transaction_time":"","transaction_type":"SETTLE",' +
        '"voidQuantity":"","voidTotalAmount":"2","settlementList":[{"reqId":"r","refNo":"1"}],"signature":""}',
      "batchNo=&quantity=&saleQuantity=&saleTotalAmount=10&voidQuantity=&voidTotalAmount=2&totalAmount=12&tid=&mid=",
    ]);
  });

  test("of a partner with extended fields ends in them, signed", () => {
    const partner = partnerSnapshot({ fields: "extended" });
    const originalId = newId() as TransactionId;
    const at = attempt({ command: "VOID", originalId, originalReqId: "r-1" });
    const endOf = (facts: IpnFacts, made = at) => {
      const { wire, signedText } = makeEnvelope(JSON.stringify(facts), partner, made);
      return [Object.entries(wire).slice(-4, -1), signedText.slice(signedText.indexOf("&command="))];
    };
    expect(endOf({ ...sale, command: "VOID" } as IpnFacts)).toEqual([
      [
        ["command", "VOID"],
        ["originalId", originalId],
        ["originalReqId", "r-1"],
      ],
      `&command=VOID&originalId=${originalId}&originalReqId=r-1`,
    ]);
    expect(endOf(sale, attempt())[1]).toBe("&command=SALE&originalId=&originalReqId=");
    expect(endOf(settlement)[1]).toBe("&command=SETTLEMENT&currency=USD");
    expect(endOf({ ...settlement, currency: undefined } as unknown as IpnFacts)[1]).toBe(
      "&command=SETTLEMENT&currency=",
    );
  });

  test("carries the headers of the contract", () => {
    const partner = partnerSnapshot();
    const originalId = newId() as TransactionId;
    const at = attempt({ attemptNo: 3, command: "VOID", originalId, outOfOrder: true });
    const { headers, body } = makeEnvelope(JSON.stringify(sale), partner, at);
    expect(headers).toEqual({
      accept: "application/json",
      "content-type": "application/json",
      "user-agent": "Paybell",
      "paybell-contract": "1",
      "paybell-key": partner.keys.encryption.id,
      "webhook-id": at.notificationId,
      "webhook-timestamp": "1750000000",
      "webhook-signature": expect.stringMatching(/^v1,[A-Za-z0-9+/]{43}=$/),
      "paybell-attempt": "3",
      "paybell-command": "VOID",
      "paybell-original-transaction": originalId,
      "paybell-out-of-order": "1",
    });
    const signature = headers["webhook-signature"] ?? "";
    const keys = partner.keys.webhook.map((secret) => secret.key);
    expect(webhookSignatureMatches(signature, at.notificationId, "1750000000", body, keys)).toBe(true);
    expect(webhookSignatureMatches(signature, at.notificationId, "1750000000", `${body} `, keys)).toBe(false);
  });

  test("names no key in a header if it is a JWE, which names it itself", () => {
    const partner = partnerSnapshot({ cipher: "jwe" });
    const { headers, body } = makeEnvelope(JSON.stringify(sale), partner, attempt());
    expect(headers).not.toHaveProperty("paybell-key");
    expect(opened(partner, body).keyId).toBe(partner.keys.encryption.id);
  });

  test("of facts that cannot be read fails without quoting them", () => {
    const make = () => makeEnvelope('{"cardNumber": 4111', partnerSnapshot(), attempt());
    expect(make).toThrow(new TypeError("The notification's facts are no JSON."));
  });

  test("is signed with both webhook secrets while a rotation lasts", () => {
    const one = partnerSnapshot();
    const [older, newer] = [one.keys.webhook, partnerSnapshot().keys.webhook];
    const partner = { ...one, keys: { ...one.keys, webhook: [...newer, ...older] } };
    const at = attempt();
    const { headers, body } = makeEnvelope(JSON.stringify(sale), partner, at);
    const signature = headers["webhook-signature"] ?? "";
    for (const [secret] of [older, newer]) {
      const keys = secret ? [secret.key] : [];
      expect(webhookSignatureMatches(signature, at.notificationId, "1750000000", body, keys)).toBe(true);
    }
  });
});
