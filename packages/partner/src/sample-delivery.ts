import { randomUUID } from "node:crypto";
import {
  type CardIpn,
  contractVersion,
  headerNames,
  type NotifiedCommand,
  type SettlementIpn,
  seal,
  sign,
  signedString,
  toWire,
  type WireNames,
  webhookSignature,
} from "@paybell/contract";
import { encryptionKeys, signingKeys, webhookKeys } from "./keys.ts";
import { Misused } from "./misused.ts";
import { type ReceiverOptions, readSettings } from "./options.ts";

/** The IPN to deliver. Missing fields get plausible values. */
export type TestIpn =
  | { readonly kind: "card"; readonly ipn?: Partial<CardIpn> }
  | { readonly kind: "settlement"; readonly ipn?: Partial<SettlementIpn> };

export interface TestDeliveryOptions {
  readonly command?: NotifiedCommand;
  readonly notificationId?: string;
  readonly attempt?: number;
  readonly wireNames?: WireNames;
  /** The id of the voided or completed transaction. */
  readonly originalTransactionId?: string;
  /** As if an earlier IPN of its chain were still to be delivered. */
  readonly outOfOrder?: boolean;
}

/** The POST as the service makes it. */
export interface TestDelivery {
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

/**
 * Signs and seals an IPN as the service does, so that you can test your own handler without the service. Use keys made
 * for tests: `randomBytes(32).toString("base64")`.
 *
 * @param options those of the receiver under test; of several versions of a key the first one is used
 */
export function testDelivery(
  options: ReceiverOptions,
  what: TestIpn,
  delivery: TestDeliveryOptions = {},
): TestDelivery {
  const settings = readSettings(options);
  const [signingKey] = signingKeys(options.signingKey);
  if (signingKey === undefined) throw new Misused("no_key_version", "signingKey");
  const facts = what.kind === "card" ? { ...sale(), ...what.ipn } : { ...settlement(), ...what.ipn };
  const wire = toWire(what.kind, facts, delivery.wireNames ?? "table");
  const signature = sign(signedString(what.kind, wire, settings.signing), signingKey);
  return testEnvelope(options, JSON.stringify({ ...wire, signature }), {
    command: what.kind === "card" ? "SALE" : "SETTLEMENT",
    ...delivery,
  });
}

/** Seals any text as an IPN's content: for tests of IPNs that must be refused. */
export function testEnvelope(
  options: ReceiverOptions,
  content: string,
  delivery: TestDeliveryOptions = {},
): TestDelivery {
  const settings = readSettings(options);
  const [sealingKey] = encryptionKeys(options.encryptionKey);
  if (sealingKey === undefined) throw new Misused("no_key_version", "encryptionKey");
  const body = JSON.stringify({ data: seal(content, settings, sealingKey) });
  const id = delivery.notificationId ?? randomUUID();
  const timestampS = Math.floor(settings.clock.nowMs() / 1000);
  const signatures = webhookKeys(options.webhookSecret).map((key) => webhookSignature(id, timestampS, body, key));
  const headers = {
    accept: "application/json",
    "content-type": "application/json",
    [headerNames.id]: id,
    [headerNames.timestamp]: String(timestampS),
    [headerNames.signature]: signatures.join(" "),
    [headerNames.attempt]: String(delivery.attempt ?? 1),
    [headerNames.contract]: contractVersion,
    [headerNames.key]: sealingKey.id,
    [headerNames.command]: delivery.command ?? "SALE",
    ...(delivery.originalTransactionId && { [headerNames.originalTransaction]: delivery.originalTransactionId }),
    ...(delivery.outOfOrder && { [headerNames.outOfOrder]: "1" }),
  };
  return { body, headers };
}

function sale(): Partial<CardIpn> {
  return {
    aid: "A0000000031010",
    amount: "150000",
    approveCode: "831000",
    batchNo: "000001",
    cardNumber: "411111******1111",
    cardScheme: "VISA",
    currency: "VND",
    id: randomUUID(),
    invoiceNo: "000001",
    isoResponseCode: "00",
    merchantTransId: "order-1",
    mid: "M00000001",
    paymentType: "card",
    refId: "432198765432",
    reqId: randomUUID(),
    status: "SUCCESS",
    swipeType: "C",
    tid: "T0000001",
    traceNo: "000001",
    transDateTime: "20260102030405",
    transaction_type: "SALE",
  };
}

function settlement(): Partial<SettlementIpn> {
  return {
    batchNo: "000001",
    id: randomUUID(),
    mid: "M00000001",
    quantity: "1",
    reqId: randomUUID(),
    saleQuantity: "1",
    saleTotalAmount: "150000",
    settlementList: [{ reqId: randomUUID(), refNo: "432198765432" }],
    status: "SUCCESS",
    tid: "T0000001",
    totalAmount: "150000",
    transaction_time: "20260102030405",
    transaction_type: "SETTLE",
    voidQuantity: "0",
    voidTotalAmount: "0",
  };
}
