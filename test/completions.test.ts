import { createDecipheriv, createHmac, randomUUID } from "node:crypto";
import { open, sealingKey } from "@paybell/contract";
import { beforeAll, describe, expect, test } from "vitest";
import type { PartnerInput } from "../packages/server/src/partners/settings/settings.ts";
import type { ReceivedDelivery } from "./support/receiver.ts";
import { serviceOfFile, type TestPartner } from "./support/service.ts";

type Fields = Readonly<Record<string, unknown>>;

const service = await serviceOfFile();

interface Agreement {
  readonly name: string;
  readonly settings: Partial<PartnerInput>;
  /** The effect of these settings on an IPN's values. */
  readonly card?: Fields;
  readonly settlement?: Fields;
}

/** What each setting does is tested beside the rendering of an IPN, and every combination in contract/. */
const agreements: readonly Agreement[] = [
  { name: "aes-256-gcm in base64, the default", settings: {} },
  {
    name: "aes-256-cbc in hex, sample names, the whole signed, contact swipe types, times of New York",
    settings: {
      cipher: "aes-256-cbc",
      encoding: "hex",
      wireNames: "sample",
      signing: { mode: "whole" },
      swipeTypes: "contact",
      timeZone: "America/New_York",
    },
    card: { swipeType: "CLS", transDateTime: "20260301183000" },
    settlement: { transaction_time: "20260301183000" },
  },
  {
    name: "JWE, an agreed list signed, with ISO 8601 times and the total net",
    settings: {
      cipher: "jwe",
      signing: {
        mode: "fields",
        card: ["transaction_type", "status", "id", "amount", "reqId"],
        settlement: ["status", "id", "transaction_type", "totalAmount"],
      },
      transactionTime: "iso8601",
      settlementTotal: "net",
      timeZone: "Asia/Ho_Chi_Minh",
    },
    card: { transDateTime: "20260302063000" },
    settlement: { transaction_time: "2026-03-01T23:30:00Z", totalAmount: "75000" },
  },
];

/** Every field of section 2.2 that a switch can give, each with a different value. */
function cardFields(command: string): Record<string, string> {
  return {
    aid: "A0000000651010",
    amount: "12.50",
    appName: `App of ${command}`,
    approveCode: "A1B2C3",
    batchNo: "000017",
    billId: "bill-17",
    cardHolder: "TRẦN THỊ B",
    cardNumber: "356600******0505",
    cardScheme: "JCB",
    currency: "USD",
    deviceId: "SN-17",
    expDate: "12/31",
    extraData: '{"command": "quoted \\"here\\" & there"}',
    id: randomUUID(),
    invoiceNo: "000018",
    isoResponseCode: "00",
    merchantAddress: "17 Hàng Bạc",
    merchantId: "MERCHANT-17",
    merchantName: "Café 17",
    merchantTransId: "order-17",
    mid: "M00000000000017",
    paymentType: "qrmo",
    refId: "417017017017",
    reqId: randomUUID(),
    status: "SUCCESS",
    swipeType: "CTL",
    tc: "00112233445566AA",
    tid: "T0000017",
    traceNo: "000019",
    transDateTime: "2026-03-01T23:30:00Z",
  };
}

function settlementFields(): Record<string, string> {
  return {
    batchNo: "000017",
    deviceId: "SN-17",
    extraData: "end of day",
    id: randomUUID(),
    merchantTransId: "settle-17",
    mid: "M00000000000017",
    quantity: "2",
    reqId: randomUUID(),
    saleQuantity: "3",
    saleTotalAmount: "100000",
    status: "SUCCESS",
    tid: "T0000017",
    transaction_time: "2026-03-01T23:30:00Z",
    voidQuantity: "1",
    voidTotalAmount: "25000",
  };
}

const settlementList = [
  { reqId: randomUUID(), refNo: "417000000001" },
  { reqId: randomUUID(), refNo: "417000000001" },
];

interface Reported {
  readonly command: string;
  readonly transactionType: string;
  readonly original?: string;
}

const cardCommands: readonly Reported[] = [
  { command: "SALE", transactionType: "SALE" },
  { command: "PREAUTH", transactionType: "SALE" },
  { command: "PREAUTH_COMPLETE", transactionType: "SALE", original: "PREAUTH" },
  { command: "VOID", transactionType: "VOID", original: "SALE" },
];

function deliveryOf(deliveries: readonly ReceivedDelivery[], command: string): ReceivedDelivery | undefined {
  return deliveries.find(({ headers }) => headers["paybell-command"] === command);
}

describe.each(agreements)("a partner with $name", ({ settings, card, settlement }) => {
  const facts = new Map(cardCommands.map(({ command }) => [command, cardFields(command)]));
  const settled = settlementFields();
  let partner: TestPartner;
  let deliveries: readonly ReceivedDelivery[];

  beforeAll(async () => {
    partner = await service.register(settings);
    const partnerId = partner.id;
    await service.report([
      ...cardCommands.map(({ command, original }) => ({
        partnerId,
        externalId: `switch-${command}`,
        command,
        ...(original !== undefined && { originalExternalId: `switch-${original}` }),
        ...facts.get(command),
      })),
      { partnerId, externalId: "switch-SETTLEMENT", command: "SETTLEMENT", ...settled, settlementList },
    ]);
    deliveries = await partner.server.next(5);
  });

  test.each(cardCommands)("receives the $command as $transactionType, every field of it", (reported) => {
    const { command, transactionType, original } = reported;
    const delivery = deliveryOf(deliveries, command);
    expect(delivery?.refused).toBeUndefined();
    expect(delivery?.received?.ipn).toEqual({
      ...facts.get(command),
      transDateTime: "20260301233000",
      ...card,
      ...(command === "VOID" && { refId: "" }),
      transaction_type: transactionType,
      signature: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
    const originalId = original === undefined ? undefined : facts.get(original)?.["id"];
    expect(delivery?.headers["paybell-original-transaction"]).toBe(originalId);
  });

  test("receives the settlement with its totals and its list", () => {
    const delivery = deliveryOf(deliveries, "SETTLEMENT");
    expect(delivery?.refused).toBeUndefined();
    expect(delivery?.received?.ipn).toEqual({
      ...settled,
      callbackUrl: partner.server.url,
      totalAmount: "125000",
      transaction_time: "20260301233000",
      ...settlement,
      transaction_type: "SETTLE",
      settlementList,
      signature: expect.stringMatching(/^[0-9a-f]{64}$/),
    });
  });

  test("finds under their wire names the fields that the specification's sample spells otherwise", () => {
    const sample = settings.wireNames === "sample";
    const cardNames = Object.keys(wireOf(partner, deliveryOf(deliveries, "SALE"), settings));
    expect(cardNames).toEqual(
      expect.arrayContaining(
        sample ? ["approve_code", "device_id", "payment_type"] : ["approveCode", "deviceId", "paymentType"],
      ),
    );
    expect(cardNames).not.toContain(sample ? "approveCode" : "approve_code");
    const wire = wireOf(partner, deliveryOf(deliveries, "SETTLEMENT"), settings);
    expect(wire).toHaveProperty(sample ? "deviceID" : "deviceId", "SN-17");
    if (sample) expect(wire).toMatchObject({ request_body: "", response: "" });
    else expect(wire).not.toHaveProperty("request_body");
  });
});

function wireOf(partner: TestPartner, delivery: ReceivedDelivery | undefined, settings: Partial<PartnerInput>): Fields {
  const { data } = JSON.parse(String(delivery?.body)) as { data: string };
  const { cipher = "aes-256-gcm", encoding = "base64" } = settings;
  const keyId = delivery?.received?.keyId ?? "";
  const key = sealingKey(keyId, Buffer.from(partner.secrets.encryptionKey, "base64"));
  return JSON.parse(open(data, { cipher, encoding }, [key]).text) as Fields;
}

test("with Node's AES-256-GCM and HMAC-SHA256 alone the IPN opens, and its signature is section 5.1's", async () => {
  const partner = await service.register();
  await service.report([{ partnerId: partner.id, externalId: "one", command: "SALE", ...cardFields("SALE") }]);
  const [delivery] = await partner.server.next(1);
  const { data } = JSON.parse(String(delivery?.body)) as { data: string };
  const bytes = Buffer.from(data, "base64");
  const key = Buffer.from(partner.secrets.encryptionKey, "base64");
  const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12)).setAuthTag(bytes.subarray(-16));
  const text = Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString("utf8");
  const { signature, ...ipn } = JSON.parse(text) as Record<string, string>;
  const signed =
    `aid=${ipn["aid"]}&amount=${ipn["amount"]}&approveCode=${ipn["approveCode"]}` +
    `&isoResponseCode=${ipn["isoResponseCode"]}&merchantTransId=${ipn["merchantTransId"]}` +
    `&isoResponseCode=${ipn["isoResponseCode"]}&cardScheme=${ipn["cardScheme"]}&tid=${ipn["tid"]}` +
    `&mid=${ipn["mid"]}&traceNo=${ipn["traceNo"]}&batchNo=${ipn["batchNo"]}`;
  const signingKey = Buffer.from(partner.secrets.signingKey, "base64");
  expect(signature).toBe(createHmac("sha256", signingKey).update(signed).digest("hex"));
});
