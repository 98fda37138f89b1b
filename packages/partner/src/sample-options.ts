import { ipnFields, notifiedCommands, wireNames } from "@paybell/contract";
import { checkNames } from "./misused.ts";
import { checkOption, type OptionRule } from "./option-checks.ts";
import type { SampleIpn, Tampering } from "./sample.ts";

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
export function checkSampleOptions(what: SampleIpn): void {
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
