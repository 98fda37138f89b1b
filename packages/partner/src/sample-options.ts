import { ipnFields, notifiedCommands, wireNames } from "@paybell/contract";
import { Misused } from "./misused.ts";
import type { SampleIpn, Spoilt } from "./sample.ts";

const spoilts: Readonly<Record<Spoilt, true>> = {
  tampered: true,
  stale: true,
  future: true,
  missing_headers: true,
  wrong_encryption_key: true,
  wrong_signing_key: true,
  wrong_webhook_secret: true,
};

interface Rule {
  readonly allows: (value: unknown) => boolean;
  /** What is allowed. */
  readonly remedy: string;
}

const text: Rule = { allows: (value) => typeof value === "string", remedy: "Give text." };
const rules: Readonly<Record<keyof SampleIpn, Rule>> = {
  command: oneOf(notifiedCommands),
  spoilt: oneOf(Object.keys(spoilts)),
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
 * A sample that is not what was meant lets a test pass for the wrong reason: nothing is left out in silence.
 *
 * @throws Misused naming the option, and what is allowed
 */
export function checkSampleOptions(what: SampleIpn): void {
  checkGiven("The first argument of sampleIpn()", what, {
    allows: (value) => Object(value) === value,
    remedy: "Give an object: { command, … }.",
  });
  checkNames("", what, Object.keys(rules));
  for (const [name, rule] of Object.entries(rules)) checkGiven(name, what[name as keyof SampleIpn], rule);
  if (what.ipn !== undefined) checkFields(what.ipn, what.command === "SETTLEMENT" ? "settlement" : "card");
}

function checkFields(ipn: object, kind: "card" | "settlement"): void {
  const fields = ipnFields(kind);
  const names = fields.map(({ name }) => name);
  checkNames("ipn.", ipn, names);
  const list = { allows: isSettlementList, remedy: "Give a list of { reqId, refNo }, both as text." };
  for (const { name, type } of fields)
    checkGiven(`ipn.${name}`, (ipn as Readonly<Record<string, unknown>>)[name], type === "list" ? list : text);
}

function checkNames(where: string, given: object, known: readonly string[]): void {
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new Misused("unknown_option", where + unknown, { remedy: `There are ${known.join(", ")}.` });
}

function checkGiven(name: string, value: unknown, { allows, remedy }: Rule): void {
  if (value instanceof Promise) throw new Misused("missing_await", name);
  if (value === undefined || allows(value)) return;
  // A short word is named; what may be a key is not.
  const isWord = typeof value === "string" && /^[\w-]{1,24}$/.test(value);
  throw new Misused("wrong_option", name, { meaning: `cannot be ${isWord ? `"${value}"` : kindOf(value)}`, remedy });
}

function kindOf(value: unknown): string {
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  if (typeof value === "string") return "this text";
  return typeof value === "object" ? "this object" : `a ${typeof value}`;
}

function oneOf(words: readonly string[]): Rule {
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
