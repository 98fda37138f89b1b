import { ciphers, encodings, notifiedCommands, type Signing, wireNames } from "@paybell/contract";
import { describe, expect, it } from "vitest";
import { fetchHandler } from "./fetch.ts";
import { receiver } from "./receiver.ts";
import { IpnRefused } from "./refused.ts";
import { type Spoilt, sampleIpn, sampleKeys } from "./testing.ts";

const settings = ciphers.flatMap((cipher) =>
  encodings.flatMap((encoding) =>
    (["fields", "whole"] satisfies Signing["mode"][]).flatMap((mode) =>
      wireNames.map((names) => ({ cipher, encoding, signing: { mode }, names })),
    ),
  ),
);

describe("a sample", () => {
  it.each(notifiedCommands)(
    "of %s opens as what it is, under every cipher, encoding, signing and naming",
    (command) => {
      for (const { names, ...agreed } of settings) {
        const options = { ...sampleKeys, ...agreed };
        const sample = sampleIpn({ command, wireNames: names }, options);
        const received = receiver(options).open(sample.body, sample.headers);
        expect(received).toEqual(sample.received);
        expect(received).toMatchObject({ command, kind: command === "SETTLEMENT" ? "settlement" : "card" });
      }
    },
  );

  it("of a Void follows its original", () => {
    const sale = sampleIpn({ ipn: { amount: "99000", invoiceNo: "000042" } });
    const { received } = sampleIpn({ command: "VOID", of: sale });
    expect(received.originalTransactionId).toBe(sale.received.ipn.id);
    expect(received.ipn).toMatchObject({ transaction_type: "VOID", amount: "99000", invoiceNo: "000042", refId: "" });
    expect(received.ipn.id).not.toBe(sale.received.ipn.id);
    expect(received.ipn.reqId).not.toBe(sale.received.ipn.reqId);
  });

  it("of a Void of a PreAuth is a CANCEL, and the PreAuth is in no batch", () => {
    const preAuth = sampleIpn({ command: "PREAUTH" });
    expect(preAuth.received.ipn).toMatchObject({ batchNo: "", transaction_type: "SALE" });
    expect(sampleIpn({ command: "VOID", of: preAuth }).received.ipn.transaction_type).toBe("CANCEL");
  });

  it("that was declined is an ERROR with that code, and a settlement that was has an empty list", () => {
    const declined = sampleIpn({ declined: "51" }).received.ipn;
    expect(declined).toMatchObject({ status: "ERROR", isoResponseCode: "51", approveCode: "", refId: "" });
    const settlement = sampleIpn({ command: "SETTLEMENT", declined: "95" }).received.ipn;
    expect(settlement).toMatchObject({ status: "ERROR", settlementList: [] });
  });

  it("has the fields, ids and headers that it is told", () => {
    const { received } = sampleIpn({ ipn: { billId: "b-1" }, notificationId: "n-1", attempt: 3, outOfOrder: true });
    expect(received).toMatchObject({ notificationId: "n-1", attempt: 3, outOfOrder: true, ipn: { billId: "b-1" } });
  });

  it.each<[Spoilt, string]>([
    ["tampered", "webhook_signature"],
    ["stale", "not_fresh"],
    ["future", "not_fresh"],
    ["missing_headers", "missing_headers"],
    ["wrong_encryption_key", "decryption"],
    ["wrong_signing_key", "signature"],
    ["wrong_webhook_secret", "webhook_signature"],
  ])("that is %s is refused for that reason, and a handler answers 400", async (spoilt, reason) => {
    const { body, headers } = sampleIpn({ spoilt });
    const paybell = receiver(sampleKeys);
    let refused: unknown;
    try {
      paybell.open(body, headers);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(IpnRefused);
    expect((refused as IpnRefused).reason).toBe(reason);
    const handle = fetchHandler(paybell, () => expect.fail("was called"), { log: () => undefined });
    expect((await handle(new Request("https://shop.example/ipn", { method: "POST", body, headers }))).status).toBe(400);
  });
});
