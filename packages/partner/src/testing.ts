import { randomUUID } from "node:crypto";
import {
  type CardCommand,
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  ipnFields,
  type NotifiedCommand,
  notifiedCommands,
  type SettlementIpn,
  sampleSale,
  type WireNames,
  wireNames,
} from "@paybell/contract";
import { type Deviation, makePost, sealerKeys, strangeKey, strangeSealingKey } from "./certify/notification.ts";
import { checkNames } from "./errors/misused.ts";
import { checkOption, type OptionRule } from "./errors/option-checks.ts";
import { webhookKeys } from "./receiver/keys.ts";
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
  return { ...(tampering ? postOf(options, content, delivery, tamperings[tampering]()) : sound), received };
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

const hourS = 3_600;

/** How the POST of such a sample differs from the service's. */
const tamperings: Readonly<Record<Tampering, () => Deviation>> = {
  tampered: () => ({ sentBody: (body) => body.replace(/.(?=.{9}$)/, (byte) => (byte === "A" ? "B" : "A")) }),
  stale: () => ({ ageSeconds: hourS }),
  future: () => ({ ageSeconds: -hourS }),
  missing_headers: () => ({
    headers: (all) => Object.fromEntries(Object.entries(all).filter(([name]) => !name.startsWith("webhook-"))),
  }),
  wrong_encryption_key: () => ({ keys: { encryptionKey: strangeSealingKey("") } }),
  wrong_signing_key: () => ({ keys: { signingKey: strangeKey() } }),
  wrong_webhook_secret: () => ({ keys: { webhookSecret: strangeKey(), otherWebhookSecrets: [] } }),
};

/** A UUIDv7, like the ids of the service. */
function timedId(nowMs: number): string {
  const time = nowMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-7${randomUUID().slice(15)}`;
}

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
  return postOf(options, what, delivery);
}

/** Seals any text as an IPN's content: for tests of IPNs that must be refused. */
export function testEnvelope(
  options: ReceiverOptions,
  content: string,
  delivery: TestDeliveryOptions = {},
): TestDelivery {
  return postOf(options, { kind: "card" }, delivery, { text: () => content });
}

function postOf(
  options: ReceiverOptions,
  { kind, ipn }: TestIpn,
  delivery: TestDeliveryOptions,
  deviation: Deviation = {},
): TestDelivery {
  const { command = kind === "card" ? "SALE" : "SETTLEMENT", notificationId = randomUUID() } = delivery;
  const { originalTransactionId, outOfOrder, wireNames, attempt } = delivery;
  const facts = { ...(kind === "card" ? sale() : settlement()), ...ipn };
  const originalId = originalTransactionId === "" ? undefined : originalTransactionId;
  const { clock } = readSettings(options);
  const [, ...otherWebhookSecrets] = webhookKeys(options.webhookSecret);
  const keys = { ...sealerKeys(options), otherWebhookSecrets };
  const notification = { kind, command, facts, notificationId, originalId, outOfOrder };
  const { body, headers } = makePost(keys, notification, clock.nowMs(), { wireNames, attempt, ...deviation });
  return { body, headers: { ...headers, "user-agent": "Paybell" } };
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
