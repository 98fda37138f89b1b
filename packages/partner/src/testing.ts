import { randomBytes, randomUUID } from "node:crypto";
import {
  type CardCommand,
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  ipnFields,
  type NotifiedCommand,
  notificationHeaders,
  notifiedCommands,
  type SettlementIpn,
  sampleSale,
  seal,
  sign,
  signedString,
  toWire,
  type WireNames,
  wireNames,
} from "@paybell/contract";
import { checkNames, Misused } from "./errors/misused.ts";
import { checkOption, type OptionRule } from "./errors/option-checks.ts";
import { encryptionKeys, signingKeys, webhookKeys } from "./receiver/keys.ts";
import { type ReceiverOptions, readSettings } from "./receiver/options.ts";
import { openWithoutSource, type ReceivedIpn, receiver } from "./receiver/receiver.ts";

/** Keys that everybody knows: for tests only. */
export const sampleKeys = {
  encryptionKey: Buffer.alloc(32, 1).toString("base64"),
  signingKey: Buffer.alloc(32, 2).toString("base64"),
  webhookSecret: `whsec_${Buffer.alloc(32, 3).toString("base64")}`,
} as const;

/** The defect of a sample. A receiver must refuse each of them, all in the same way. */
export type Tampering =
  /** A byte of the body was modified in transit. */
  | "tampered"
  /** Its headers say that it was signed and sent an hour ago. */
  | "stale"
  /** Its headers say that it is signed in an hour from now. */
  | "future"
  | "missing_headers"
  | "wrong_encryption_key"
  | "wrong_signing_key"
  | "wrong_webhook_secret";

/** The sample to make. Missing options have plausible values. */
export interface SampleIpn extends TestDeliveryOptions {
  /** Fields of the IPN, by the names of its table. */
  readonly ipn?: Partial<ExtendedCardIpn> | Partial<ExtendedSettlementIpn>;
  /** An isoResponseCode such as 51: the command failed, with status ERROR. */
  readonly declined?: string;
  /** The sample that a Void voids, a PreAuth-Complete completes, or a Refund refunds. */
  readonly of?: Sample;
  readonly tampering?: Tampering;
}

/** A sealed POST. */
export interface Sample extends TestDelivery {
  /** The result of opening it, if it were not tampered with. */
  readonly received: ReceivedIpn;
}
export interface CardSample extends Sample {
  readonly received: Extract<ReceivedIpn, { kind: "card" }>;
}
export interface SettlementSample extends Sample {
  readonly received: Extract<ReceivedIpn, { kind: "settlement" }>;
}

/**
 * Makes an IPN as the service would POST it, signed and sealed: for tests of your own callback.
 *
 * @param what default a Sale; the command determines the other plausible values
 * @param options the receiver's; default `sampleKeys` and the default cipher, encoding and signing
 * @throws Misused for any unknown option, so that no test passes for the wrong reason
 */
export function sampleIpn(what: SampleIpn & { command: "SETTLEMENT" }, options?: ReceiverOptions): SettlementSample;
export function sampleIpn(what?: SampleIpn & { command?: CardCommand }, options?: ReceiverOptions): CardSample;
export function sampleIpn(what?: SampleIpn, options?: ReceiverOptions): Sample;
export function sampleIpn(what: SampleIpn = {}, options: ReceiverOptions = sampleKeys): Sample {
  checkSampleOptions(what);
  const { command = "SALE", of, tampering } = what;
  const nowMs = options.clock?.nowMs() ?? Date.now();
  const original = of?.received.ipn.id ?? (followUps.includes(command) ? timedId(nowMs) : "");
  const delivery = { notificationId: timedId(nowMs), originalTransactionId: original, ...what, command };
  const content = contentOf(what, command, nowMs);
  const sound = testDelivery(options, content, delivery);
  const received = openWithoutSource(receiver(options), sound.body, sound.headers);
  return { ...(tampering ? tamper(tampering, options, content, delivery, nowMs) : sound), received };
}

const followUps: readonly NotifiedCommand[] = ["VOID", "PREAUTH_COMPLETE", "REFUND"];

function contentOf(what: SampleIpn, command: NotifiedCommand, nowMs: number): TestIpn {
  const { ipn, declined } = what;
  const id = timedId(nowMs);
  if (command === "SETTLEMENT") {
    const failed = declined === undefined ? {} : { status: "ERROR", settlementList: [] };
    return { kind: "settlement", ipn: { id, ...failed, ...ipn } };
  }
  const failed = declined === undefined ? {} : { status: "ERROR", isoResponseCode: declined, approveCode: "" };
  const noRefId = declined !== undefined || command === "VOID" ? { refId: "" } : {};
  const original = what.of?.received.ipn;
  const inherited = { ...byCommand(command, what.of?.received), id, ...failed, ...noRefId, ...nameOriginal(original) };
  return { kind: "card", ipn: { ...inherited, ...ipn } as Partial<ExtendedCardIpn> };
}

/** A follow-up inherits missing fields from its original. A PreAuth belongs to no batch. */
function byCommand(command: NotifiedCommand, original: ReceivedIpn | undefined): Partial<CardIpn> {
  if (command === "SALE") return {};
  if (command === "PREAUTH") return { batchNo: "" };
  const {
    signature: _,
    command: __,
    ...inherited
  } = (original?.kind === "card" ? original.ipn : {}) as Partial<ExtendedCardIpn>;
  const own = { ...inherited, reqId: randomUUID() };
  if (command === "PREAUTH_COMPLETE") return { ...own, batchNo: "000001", refId: "432198765433" };
  if (command === "REFUND") {
    const numbers = { approveCode: "831002", invoiceNo: "000002", refId: "432198765434", tc: "", traceNo: "000002" };
    return { ...own, ...numbers, transaction_type: command };
  }
  const ofPreAuth = (original?.command ?? original?.headers.command) === "PREAUTH";
  return { ...own, transaction_type: ofPreAuth ? "CANCEL" : "VOID" };
}

function nameOriginal(original: ReceivedIpn["ipn"] | undefined): Partial<ExtendedCardIpn> {
  return original === undefined ? {} : { originalId: original.id, originalReqId: original.reqId };
}

const hourMs = 3_600_000;

function tamper(
  tampering: Tampering,
  options: ReceiverOptions,
  content: TestIpn,
  delivery: TestDeliveryOptions,
  nowMs: number,
): TestDelivery {
  const made = (change: Partial<ReceiverOptions>) => testDelivery({ ...options, ...change }, content, delivery);
  const otherKey = randomBytes(32).toString("base64");
  switch (tampering) {
    case "tampered": {
      const { body, headers } = made({});
      const at = body.length - 10;
      return { body: body.slice(0, at) + (body[at] === "A" ? "B" : "A") + body.slice(at + 1), headers };
    }
    case "stale":
      return made({ clock: { nowMs: () => nowMs - hourMs } });
    case "future":
      return made({ clock: { nowMs: () => nowMs + hourMs } });
    case "missing_headers": {
      const { body, headers } = made({});
      const kept = Object.entries(headers).filter(([name]) => !name.startsWith("webhook-"));
      return { body, headers: Object.fromEntries(kept) };
    }
    case "wrong_encryption_key":
      return made({ encryptionKey: otherKey });
    case "wrong_signing_key":
      return made({ signingKey: otherKey });
    case "wrong_webhook_secret":
      return made({ webhookSecret: `whsec_${otherKey}` });
  }
}

/** A UUIDv7, like the ids of the service. */
function timedId(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

const tamperings: Readonly<Record<Tampering, true>> = {
  tampered: true,
  stale: true,
  future: true,
  missing_headers: true,
  wrong_encryption_key: true,
  wrong_signing_key: true,
  wrong_webhook_secret: true,
};

const text: OptionRule = { allows: (value) => typeof value === "string", remedy: "Give text." };
const rules: Readonly<Record<keyof SampleIpn, OptionRule>> = {
  command: oneOf(notifiedCommands),
  tampering: oneOf(Object.keys(tamperings)),
  wireNames: oneOf(wireNames),
  declined: { ...text, remedy: 'Give an isoResponseCode as text: "51".' },
  notificationId: text,
  originalTransactionId: text,
  attempt: { allows: (value) => Number.isInteger(value) && Number(value) >= 1, remedy: "Give a whole number from 1." },
  outOfOrder: { allows: (value) => typeof value === "boolean", remedy: "Give true or false." },
  of: { allows: isSample, remedy: "Give a whole sample, as sampleIpn() made it." },
  ipn: { allows: (value) => Object(value) === value && !Array.isArray(value), remedy: "Give an object of its fields." },
};

/**
 * A sample with a misspelled option would let a test pass for the wrong reason, so unknown options are refused.
 *
 * @throws Misused naming the option, and the allowed ones
 */
function checkSampleOptions(what: SampleIpn): void {
  checkOption("The first argument of sampleIpn()", what, {
    allows: (value) => Object(value) === value,
    remedy: "Give an object: { command, … }.",
  });
  checkNames("", what, Object.keys(rules));
  for (const [name, rule] of Object.entries(rules)) checkIfPresent(name, what[name as keyof SampleIpn], rule);
  if (what.ipn !== undefined) checkFields(what.ipn, what.command === "SETTLEMENT" ? "settlement" : "card");
}

function checkFields(ipn: object, kind: "card" | "settlement"): void {
  const fields = ipnFields(kind, "extended");
  const names = fields.map(({ name }) => name);
  checkNames("ipn.", ipn, names);
  const list = { allows: isSettlementList, remedy: "Give a list of { reqId, refNo }, both as text." };
  for (const { name, type } of fields)
    checkIfPresent(`ipn.${name}`, (ipn as Readonly<Record<string, unknown>>)[name], type === "list" ? list : text);
}

/** Undefined values are ignored. */
function checkIfPresent(name: string, value: unknown, rule: OptionRule): void {
  if (value !== undefined) checkOption(name, value, rule);
}

function oneOf(words: readonly string[]): OptionRule {
  return { allows: (value) => words.includes(value as string), remedy: `Give one of ${words.join(", ")}.` };
}

function isSample(value: unknown): boolean {
  const { body, received } = Object(value) as Readonly<Record<string, unknown>>;
  return typeof body === "string" && typeof Object(received).ipn?.id === "string";
}

function isSettlementList(value: unknown): boolean {
  return (
    Array.isArray(value) &&
    value.every((one) => typeof Object(one).reqId === "string" && typeof Object(one).refNo === "string")
  );
}

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
