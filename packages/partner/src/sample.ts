import { randomBytes, randomUUID } from "node:crypto";
import {
  type CardCommand,
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  ipnFields,
  type NotifiedCommand,
  notifiedCommands,
  wireNames,
} from "@paybell/contract";
import { checkNames } from "./misused.ts";
import { checkOption, type OptionRule } from "./option-checks.ts";
import type { ReceiverOptions } from "./options.ts";
import { openWithoutSource, type ReceivedIpn, receiver } from "./receiver.ts";
import { type TestDelivery, type TestDeliveryOptions, type TestIpn, testDelivery } from "./sample-delivery.ts";

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
