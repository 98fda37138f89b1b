import {
  ciphers,
  defaultSealing,
  defaultSigning,
  encodings,
  type Signing,
  signingProblems,
  transactionTypes,
  wireNames,
} from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { parseBlock } from "./addresses.ts";
import { callbackCaProblems, callbackPinProblems, callbackPortProblems } from "./callback-tls.ts";
import { type CallbackUrlRules, callbackUrlProblem } from "./callback-url.ts";
import type { PartnerSettings, ReportSettings, TransactionTypes } from "./partner.ts";
import { defaultReportSettings, reportSettingsProblems } from "./report-settings.ts";

/** What a registration may say: a name and both address lists; everything else has a default. */
export type PartnerInput = Pick<PartnerSettings, "name" | "callbackAddresses" | "callingAddresses"> &
  Partial<Omit<PartnerSettings, "name" | "callbackAddresses" | "callingAddresses" | "transactionTypes" | "reports">> & {
    /** The ones that differ from the specification's. */
    readonly transactionTypes?: Partial<TransactionTypes>;
    readonly reports?: Partial<ReportSettings>;
  };

/** Everything that has a default. */
export type DefaultSettings = Omit<PartnerSettings, "name" | "callbackAddresses" | "callingAddresses">;

export const defaultSettings: DefaultSettings = {
  callBackUrl: null,
  callbackCa: null,
  callbackPins: [],
  callbackPorts: null,
  cipher: defaultSealing.cipher,
  encoding: defaultSealing.encoding,
  signing: defaultSigning,
  wireNames: "table",
  transactionTypes: {
    SALE: "SALE",
    PREAUTH: "SALE",
    PREAUTH_COMPLETE: "SALE",
    REFUND: "REFUND",
    VOID: "VOID",
    VOID_PREAUTH: "CANCEL",
    SETTLEMENT: "SETTLE",
  },
  swipeTypes: "code",
  settlementTotal: "sum",
  transactionTime: "table",
  timeZone: "UTC",
  ordering: "chain",
  // 5 s, 30 s, 2 min, 10 min, 30 min, 1 h, 2 h, 4 h, 8 h, 12 h, 24 h, 24 h: about three days.
  retry: [5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400, 28_800, 43_200, 86_400, 86_400],
  maxInFlight: 32,
  maxPerSecond: null,
  terminals: "open",
  refunds: "off",
  reports: defaultReportSettings,
};

export const settingsBounds = {
  nameCharactersMax: 200,
  addressesMax: 256,
  retryStepsMax: 30,
  retryStepSMax: 86_400,
  maxInFlight: 512,
  maxPerSecond: 10_000,
} as const;

/** A registration with its defaults filled in. Call it with what has no `settingsProblems`. */
export function completeSettings(input: PartnerInput, defaults: DefaultSettings = defaultSettings): PartnerSettings {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as PartnerInput;
  return {
    ...defaults,
    ...given,
    transactionTypes: { ...defaults.transactionTypes, ...input.transactionTypes },
    reports: { ...defaults.reports, ...input.reports },
  };
}

type Check = (field: string, value: unknown) => readonly FieldProblem[];

const choices = {
  cipher: ciphers,
  encoding: encodings,
  wireNames,
  swipeTypes: ["code", "contact"],
  settlementTotal: ["sum", "net"],
  transactionTime: ["table", "iso8601"],
  ordering: ["chain", "none"],
  terminals: ["open", "registered"],
  refunds: ["off", "silent", "notified"],
} as const satisfies Partial<{ [Name in keyof PartnerSettings]: readonly PartnerSettings[Name][] }>;

const checks: Readonly<Record<Exclude<keyof PartnerSettings, "callBackUrl" | keyof typeof choices>, Check>> = {
  name: nameProblems,
  callbackAddresses: (field, value) => addressProblems(field, value, 1),
  callingAddresses: (field, value) => addressProblems(field, value, 0),
  callbackCa: callbackCaProblems,
  callbackPins: callbackPinProblems,
  callbackPorts: callbackPortProblems,
  signing: signingShapeProblems,
  transactionTypes: transactionTypeProblems,
  reports: reportSettingsProblems,
  timeZone: timeZoneProblems,
  retry: retryProblems,
  maxInFlight: (field, value) => wholeNumberProblems(field, value, 1, settingsBounds.maxInFlight),
  maxPerSecond: (field, value) =>
    value === null ? [] : wholeNumberProblems(field, value, 1, settingsBounds.maxPerSecond),
};

const required = ["name", "callbackAddresses", "callingAddresses"] as const;

/** Everything wrong with a registration, all at once. */
export function settingsProblems(
  input: Readonly<Record<string, unknown>> | PartnerInput,
  rules: CallbackUrlRules,
): FieldProblem[] {
  const values: Readonly<Record<string, unknown>> = { ...input };
  const missing = required
    .filter((field) => values[field] === undefined)
    .map((field): FieldProblem => ({ field, code: "missing_field", message: `${field} is missing.` }));
  const wrong = Object.entries(values).flatMap(([field, value]) => {
    if (value === undefined) return [];
    if (field === "callBackUrl") return callBackUrlProblems(value, rules, values);
    if (Object.hasOwn(choices, field)) return choiceProblems(field, value, choices[field as keyof typeof choices]);
    if (Object.hasOwn(checks, field)) return checks[field as keyof typeof checks](field, value);
    return [{ field, code: "unknown_field", message: `${field} is not a setting.` } as const];
  });
  return [...missing, ...wrong];
}

function callBackUrlProblems(
  value: unknown,
  rules: CallbackUrlRules,
  { callbackAddresses: addresses, callbackPorts: ports = null }: Readonly<Record<string, unknown>>,
): FieldProblem[] {
  const field = "callBackUrl";
  if (value === null) return [];
  if (typeof value !== "string") return [wrongType(field, "a text or null")];
  const usable = Array.isArray(addresses) && addressProblems(field, addresses, 1).length === 0;
  const callbackPorts = callbackPortProblems(field, ports).length === 0 ? (ports as number[] | null) : null;
  const agreed = { callbackPorts, ...(usable && { callbackAddresses: addresses as string[] }) };
  const problem = callbackUrlProblem(field, value, rules, agreed);
  return problem === undefined ? [] : [problem];
}

function nameProblems(field: string, value: unknown): FieldProblem[] {
  if (typeof value !== "string") return [wrongType(field, "a text")];
  const charactersMax = settingsBounds.nameCharactersMax;
  if (value.length > charactersMax)
    return [{ field, code: "too_long", message: `${field} has over ${charactersMax} characters.` }];
  if (value.trim() === "") return [invalid(field, "must not be empty")];
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) return [invalid(field, "must not hold control characters")];
  return [];
}

function addressProblems(field: string, value: unknown, countMin: number): FieldProblem[] {
  if (!Array.isArray(value)) return [wrongType(field, "a list of CIDRs")];
  if (value.length < countMin) return [invalid(field, "must hold at least one CIDR")];
  const countMax = settingsBounds.addressesMax;
  if (value.length > countMax) return [{ field, code: "too_long", message: `${field} holds over ${countMax} CIDRs.` }];
  return value.flatMap((entry: unknown, at) => {
    if (typeof entry !== "string") return [wrongType(`${field}[${at}]`, "a text")];
    if (parseBlock(entry) !== undefined) return [];
    return [invalid(`${field}[${at}]`, "must be a CIDR such as 203.0.113.0/24 or 2001:db8::/32")];
  });
}

function signingShapeProblems(field: string, value: unknown): FieldProblem[] {
  const shape = "an object with mode and, for mode fields, the lists card and settlement";
  if (!isObject(value)) return [wrongType(field, shape)];
  const unknown = Object.keys(value).filter((name) => !["mode", "card", "settlement"].includes(name));
  const lists = ["card", "settlement"].filter((name) => value[name] !== undefined);
  const misshapen = lists.filter((name) => {
    const list = value[name];
    return !Array.isArray(list) || !list.every((entry) => typeof entry === "string");
  });
  if (misshapen.length > 0) return misshapen.map((name) => wrongType(`${field}.${name}`, "a list of field names"));
  if (unknown.length > 0) {
    return unknown.map((name) => ({
      field: `${field}.${name}`,
      code: "unknown_field",
      message: `${field}.${name} is not known.`,
    }));
  }
  if (value["mode"] === "whole" && lists.length > 0) {
    return lists.map((name) => invalid(`${field}.${name}`, "has no place beside mode whole, which signs every field"));
  }
  return signingProblems(value as unknown as Signing).map((message) => ({
    field,
    code: "invalid_signing",
    message: `${message}.`,
  }));
}

function transactionTypeProblems(field: string, value: unknown): FieldProblem[] {
  if (!isObject(value)) return [wrongType(field, "an object from commands to transaction types")];
  return Object.entries(value).flatMap(([command, type]) => {
    const at = `${field}.${command}`;
    if (type === undefined) return [];
    if (!Object.hasOwn(defaultSettings.transactionTypes, command)) {
      return [{ field: at, code: "unknown_field", message: `${at} is no command that is notified.` } as const];
    }
    return choiceProblems(at, type, transactionTypes);
  });
}

function timeZoneProblems(field: string, value: unknown): FieldProblem[] {
  if (typeof value !== "string") return [wrongType(field, "a text")];
  // Intl takes offsets such as +07:00 too, but an offset knows no daylight saving time.
  if (/^[A-Za-z]/.test(value) && isTimeZone(value)) return [];
  return [invalid(field, "must be an IANA time zone such as Asia/Ho_Chi_Minh or UTC")];
}

function isTimeZone(name: string): boolean {
  try {
    new Intl.DateTimeFormat("en", { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function retryProblems(field: string, value: unknown): FieldProblem[] {
  if (!Array.isArray(value)) return [wrongType(field, "a list of seconds")];
  const { retryStepsMax, retryStepSMax } = settingsBounds;
  if (value.length < 1 || value.length > retryStepsMax)
    return [invalid(field, `must hold 1 to ${retryStepsMax} steps`)];
  return value.flatMap((step, at) => wholeNumberProblems(`${field}[${at}]`, step, 1, retryStepSMax));
}

function wholeNumberProblems(field: string, value: unknown, min: number, max: number): FieldProblem[] {
  if (typeof value !== "number") return [wrongType(field, "a number")];
  return Number.isInteger(value) && value >= min && value <= max
    ? []
    : [invalid(field, `must be a whole number from ${min} to ${max}`)];
}

function choiceProblems(field: string, value: unknown, allowed: readonly unknown[]): FieldProblem[] {
  return allowed.includes(value) ? [] : [invalid(field, `must be one of ${allowed.join(", ")}`)];
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function invalid(field: string, rule: string): FieldProblem {
  return { field, code: "invalid_value", message: `${field} ${rule}.` };
}

function wrongType(field: string, type: string): FieldProblem {
  return { field, code: "wrong_type", message: `${field} must be ${type}.` };
}
