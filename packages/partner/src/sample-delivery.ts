import { randomUUID } from "node:crypto";
import {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type NotifiedCommand,
  notificationHeaders,
  type SettlementIpn,
  sampleSale,
  seal,
  sign,
  signedString,
  toWire,
  type WireNames,
} from "@paybell/contract";
import { encryptionKeys, signingKeys, webhookKeys } from "./keys.ts";
import { Misused } from "./misused.ts";
import { type ReceiverOptions, readSettings } from "./options.ts";

/** The IPN to deliver. Missing fields get plausible values. */
export type TestIpn =
  | { readonly kind: "card"; readonly ipn?: Partial<ExtendedCardIpn> }
  | { readonly kind: "settlement"; readonly ipn?: Partial<ExtendedSettlementIpn> };

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
  const { command = what.kind === "card" ? "SALE" : "SETTLEMENT", originalTransactionId = "" } = delivery;
  const [fields = "specification"] = settings.fields;
  // Without fields: "extended" these are left out.
  const extended = { command, originalId: originalTransactionId, currency: "VND", ...facts };
  const wire = toWire(what.kind, extended, delivery.wireNames ?? "table", fields);
  const signature = sign(signedString(what.kind, wire, settings.signing, fields), signingKey);
  return testEnvelope(options, JSON.stringify({ ...wire, signature }), { ...delivery, command });
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
  const headers = notificationHeaders({
    id,
    command: delivery.command ?? "SALE",
    attemptNo: delivery.attempt ?? 1,
    body,
    timestampS: Math.floor(settings.clock.nowMs() / 1000),
    webhookKeys: webhookKeys(options.webhookSecret),
    cipher: settings.cipher,
    keyId: sealingKey.id,
    userAgent: "Paybell",
    originalId: delivery.originalTransactionId === "" ? undefined : delivery.originalTransactionId,
    outOfOrder: delivery.outOfOrder,
  });
  return { body, headers };
}

function sale(): Partial<CardIpn> {
  return {
    ...sampleSale,
    amount: "150000",
    approveCode: "831000",
    id: randomUUID(),
    merchantTransId: "order-1",
    mid: "M00000001",
    refId: "432198765432",
    reqId: randomUUID(),
    tid: "T0000001",
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
