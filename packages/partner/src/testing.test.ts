import { ciphers, encodings, fieldSets, notifiedCommands, type Signing, wireNames } from "@paybell/contract";
import { describe, expect, it } from "vitest";
import { Misused } from "./errors/misused.ts";
import { IpnRefused } from "./errors/refused.ts";
import { fetchHandler } from "./fetch.ts";
import { receiver } from "./receiver/receiver.ts";
import { sampleIpn, sampleKeys, type Tampering } from "./testing.ts";

const settings = ciphers.flatMap((cipher) =>
  encodings.flatMap((encoding) =>
    (["fields", "whole"] satisfies Signing["mode"][]).flatMap((mode) =>
      wireNames.flatMap((names) => fieldSets.map((fields) => ({ cipher, encoding, signing: { mode }, names, fields }))),
    ),
  ),
);

const key = (byte: number) => Buffer.alloc(32, byte).toString("base64");
const duringRotation = {
  encryptionKey: [
    { id: "e1", key: key(4) },
    { id: "e2", key: key(5) },
  ],
  signingKey: [
    { id: "s1", key: key(6) },
    { id: "s2", key: key(7) },
  ],
  webhookSecret: [{ key: `whsec_${key(8)}` }, { key: `whsec_${key(9)}` }],
} as const;

describe("a sample", () => {
  it.each(notifiedCommands)(
    "of %s opens as that IPN, under every cipher, encoding, signing and set of names",
    (command) => {
      for (const { names, ...agreed } of settings) {
        const options = { ...sampleKeys, ...agreed };
        const sample = sampleIpn({ command, wireNames: names }, options);
        const received = receiver(options).open(sample.body, sample.headers);
        expect(received).toEqual(sample.received);
        const isExtended = agreed.fields === "extended";
        const kind = command === "SETTLEMENT" ? "settlement" : "card";
        const says = isExtended || kind === "settlement" ? command : undefined;
        expect(received).toMatchObject({ command: says, headers: { command }, kind });
      }
    },
  );

  it("of a Void follows its original", () => {
    const sale = sampleIpn({ ipn: { amount: "99000", invoiceNo: "000042" } });
    const { received } = sampleIpn({ command: "VOID", of: sale });
    expect(received.headers.originalTransactionId).toBe(sale.received.ipn.id);
    expect(received.ipn).toMatchObject({ transaction_type: "VOID", amount: "99000", invoiceNo: "000042", refId: "" });
    expect(received.ipn.id).not.toBe(sale.received.ipn.id);
    expect(received.ipn.reqId).not.toBe(sale.received.ipn.reqId);
  });

  it("of a Refund is a REFUND of its original, with an invoice number of its own", () => {
    const sale = sampleIpn({ ipn: { amount: "99000", invoiceNo: "000042" } });
    const { received } = sampleIpn({ command: "REFUND", of: sale, ipn: { amount: "5000" } });
    expect(received.headers.originalTransactionId).toBe(sale.received.ipn.id);
    expect(received.ipn).toMatchObject({ transaction_type: "REFUND", amount: "5000", mid: sale.received.ipn.mid });
    expect(received.ipn.invoiceNo).not.toBe("000042");
    expect(received.ipn.refId).not.toBe(sale.received.ipn.refId);
    expect(sampleIpn({ command: "REFUND" }).received.headers.originalTransactionId).toMatch(/^[0-9a-f-]{36}$/);
  });

  it("of a Void of a PreAuth is a CANCEL, and the PreAuth is in no batch", () => {
    const preAuth = sampleIpn({ command: "PREAUTH" });
    expect(preAuth.received.ipn).toMatchObject({ batchNo: "", transaction_type: "SALE" });
    expect(sampleIpn({ command: "VOID", of: preAuth }).received.ipn.transaction_type).toBe("CANCEL");
  });

  it("that was declined is an ERROR with that code, and a declined settlement has an empty list", () => {
    const declined = sampleIpn({ declined: "51" }).received.ipn;
    expect(declined).toMatchObject({ status: "ERROR", isoResponseCode: "51", approveCode: "", refId: "" });
    const settlement = sampleIpn({ command: "SETTLEMENT", declined: "95" }).received.ipn;
    expect(settlement).toMatchObject({ status: "ERROR", settlementList: [] });
  });

  it("is made also for a receiver with sourceAddresses", () => {
    const options = { ...sampleKeys, sourceAddresses: ["192.0.2.1"] };
    const { body, headers, received } = sampleIpn({}, options);
    expect(receiver(options).open(body, headers, "192.0.2.1")).toEqual(received);
  });

  it("has the requested fields, ids and headers", () => {
    const { received } = sampleIpn({ ipn: { billId: "b-1" }, notificationId: "n-1", attempt: 3, outOfOrder: true });
    expect(received).toMatchObject({ notificationId: "n-1", attempt: 3, outOfOrder: true, ipn: { billId: "b-1" } });
  });

  it.each<[Tampering, string]>([
    ["tampered", "webhook_signature"],
    ["stale", "not_fresh"],
    ["future", "not_fresh"],
    ["missing_headers", "missing_headers"],
    ["wrong_encryption_key", "decryption"],
    ["wrong_signing_key", "signature"],
    ["wrong_webhook_secret", "webhook_signature"],
  ])("that is %s is refused for that reason, and a handler answers 400", async (tampering, reason) => {
    for (const keys of [sampleKeys, duringRotation]) {
      const { body, headers } = sampleIpn({ tampering }, keys);
      const paybell = receiver(keys);
      let refused: unknown;
      try {
        paybell.open(body, headers);
      } catch (error) {
        refused = error;
      }
      expect(refused).toBeInstanceOf(IpnRefused);
      expect((refused as IpnRefused).reason).toBe(reason);
      const handle = fetchHandler(paybell, () => expect.fail("was called"), { log: () => undefined });
      const request = new Request("https://shop.example/ipn", { method: "POST", body, headers });
      expect((await handle(request)).status).toBe(400);
    }
  });

  it("is signed with every version of the webhook secret", () => {
    const { body, headers } = sampleIpn({}, duringRotation);
    const [, later] = duringRotation.webhookSecret;
    expect(receiver({ ...duringRotation, webhookSecret: later.key }).open(body, headers).kind).toBe("card");
  });
});

describe("an option that sampleIpn does not know is refused, with the allowed ones", () => {
  const sale = sampleIpn();
  it.each<[what: unknown, says: RegExp]>([
    ...["sale", "void", "preauth-complete", "settlement", "TIP", "DECLINE"].map((command): [unknown, RegExp] => [
      { command },
      new RegExp(`^command cannot be "${command}"\\. Give one of SALE, .*SETTLEMENT`),
    ]),
    [{ command: "a-text-that-is-as-long-as-a-key-may-be" }, /^command cannot be this text\./],
    [{ comand: "VOID" }, /^comand is not an option\. There are command, /],
    [{ ipn: { amout: "1" } }, /^ipn\.amout is not an option\. There are .*amount/],
    [{ ipn: { totalAmount: "1" } }, /^ipn\.totalAmount is not an option/],
    [{ command: "SETTLEMENT", ipn: { amount: "1" } }, /^ipn\.amount is not an option\. There are .*totalAmount/],
    [{ command: "SETTLEMENT", ipn: { settlementList: ["1"] } }, /^ipn\.settlementList cannot be a list\..*refNo/],
    [{ ipn: { amount: 1 } }, /^ipn\.amount cannot be a number\. Give text/],
    [{ ipn: Promise.resolve({}) }, /^ipn is a Promise\. await/],
    [{ ipn: [] }, /^ipn cannot be a list/],
    [
      { tampering: "tampered_body" },
      /^tampering cannot be "tampered_body"\. Give one of tampered, .*wrong_webhook_secret/,
    ],
    [{ declined: 5 }, /^declined cannot be a number\. Give an isoResponseCode/],
    [{ of: sale.received }, /^of cannot be this object\. Give a whole sample/],
    [{ of: Promise.resolve(sale) }, /^of is a Promise/],
    [{ wireNames: "samples" }, /^wireNames cannot be "samples"\. Give one of table, sample/],
    [{ attempt: 0 }, /^attempt cannot be a number\. Give a whole number from 1/],
    [{ outOfOrder: "1" }, /^outOfOrder cannot be this text/],
    [{ notificationId: null }, /^notificationId cannot be null/],
    ["VOID", /^The first argument of sampleIpn\(\) cannot be "VOID"\. Give an object/],
    [Promise.resolve({}), /^The first argument of sampleIpn\(\) is a Promise/],
  ])("%j", (what, says) => {
    let error: unknown;
    try {
      sampleIpn(what as never);
    } catch (one) {
      error = one;
    }
    expect(error).toBeInstanceOf(Misused);
    expect((error as Misused).message).toMatch(says);
  });

  it("but not an undefined one, nor the fields of a received IPN", () => {
    expect(
      sampleIpn({ command: undefined, tampering: undefined, of: undefined } as never).received.headers.command,
    ).toBe("SALE");
    const { ipn } = sampleIpn({ command: "SETTLEMENT" }).received;
    expect(sampleIpn({ command: "SETTLEMENT", ipn }).received.ipn).toMatchObject({ id: ipn.id });
  });
});
