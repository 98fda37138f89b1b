import {
  ciphers,
  contractVersion,
  contractVersions,
  defaultSealing,
  defaultSigning,
  encodings,
  type FieldSet,
  fieldSets,
  type IpnKind,
  type NotifiedCommand,
  notifiedCommands,
  type Signing,
  signedFields,
  signingProblems,
  type TransactionType,
  transactionTypes,
  wireNames,
} from "@paybell/contract";
import { z } from "zod";
import { defaultRetrySeconds, historyMarginDays, retryBounds, scheduleDays } from "../../config/retry-schedule.ts";
import { type FieldProblem, invalid, tooLong, unknownField, wrongType } from "../../errors.ts";
import { matches, parseBlock, requireBlock } from "./address-blocks.ts";
import {
  type CallbackUrlRules,
  callbackCaProblems,
  callbackPinProblems,
  callbackPortProblems,
  callbackTlsBounds,
  callbackUrlProblem,
} from "./callback-rules.ts";
import {
  choice,
  choiceProblems,
  group,
  initialValues,
  isObject,
  type PartnerSetting,
  type SettingContext,
  tableProblems,
  type ValuesOf,
  wholeNumber,
  wholeNumberProblems,
} from "./setting.ts";

const schemesMax = 64;
const schemeCharactersMax = 16;

/** The formats of the operator's switch in reports for a partner. */
const reportSettings = {
  identity: choice(
    ["externalId", "externalId+command"],
    "externalId",
    "externalId+command: a Sale and its Void may have one externalId",
  ),
  amounts: choice(["major", "minor"], "major", "minor: digits in the currency's smallest unit"),
  zeroAmounts: choice(["declined", "any"], "declined", "any: a verified card is a success of the amount 0"),
  responseCodes: choice(["1987", "1993"], "1987", "1993: isoResponseCode is an action code"),
  schemes: {
    initial: {},
    schema: z.record(z.string(), z.string()),
    meaning: "The cardScheme to send for a scheme beyond the specification's table, which is sent empty otherwise",
    check: schemesProblems,
  } as PartnerSetting<Readonly<Record<string, string>>>,
};

export type ReportSettings = ValuesOf<typeof reportSettings>;

/** The partner's setting `reports`, which contains all of these. */
export const reportsSetting = group(reportSettings, "How the operator's switch writes its reports");

const schemePattern = /^[^\p{Cc}&]*$/u;

function schemesProblems(field: string, value: unknown): FieldProblem[] {
  if (!isObject(value)) return [wrongType(field, "an object")];
  const entries = Object.entries(value);
  if (entries.length > schemesMax) return [tooLong(field, `has over ${schemesMax} schemes`)];
  return entries.flatMap(([name, scheme]) => {
    const path = `${field}.${name.slice(0, schemeCharactersMax)}`;
    if (typeof scheme !== "string") return [wrongType(path, "a text")];
    const fits = scheme.length <= schemeCharactersMax && name.length <= 2 * schemeCharactersMax;
    if (fits && [name, scheme].every((text) => schemePattern.test(text) && text.isWellFormed())) return [];
    return [
      invalid(path, `must have at most ${schemeCharactersMax} characters, none of them & or a control character`),
    ];
  });
}

const nameCharactersMax = 200;
const addressesMax = 256;
const perSecondMax = 10_000;
const contactMailsMax = 10;
const mailCharactersMax = 254;
const cidrs = z.array(z.string()).max(addressesMax);

/** The transaction_type of each command's IPN; VOID_PREAUTH is the Void of a PreAuth. */
export type TransactionTypes = Readonly<Record<NotifiedCommand | "VOID_PREAUTH", TransactionType>>;

const defaultTypes: TransactionTypes = {
  SALE: "SALE",
  PREAUTH: "SALE",
  PREAUTH_COMPLETE: "SALE",
  REFUND: "REFUND",
  VOID: "VOID",
  VOID_PREAUTH: "CANCEL",
  SETTLEMENT: "SETTLE",
};

const required = {
  name: {
    initial: undefined,
    schema: z.string().max(nameCharactersMax),
    meaning: "The partner, as the operator calls it",
    check: nameProblems,
  } as PartnerSetting<string>,
  callbackAddresses: {
    initial: undefined,
    schema: cidrs.min(1),
    meaning: "CIDRs that a callback's address must be in",
    check: (field, value) => addressProblems(field, value, 1),
  } as PartnerSetting<readonly string[]>,
  callingAddresses: {
    initial: undefined,
    schema: z.array(z.string()).max(addressesMax),
    meaning: "CIDRs that the partner calls from",
    check: (field, value) => addressProblems(field, value, 0),
  } as PartnerSetting<readonly string[]>,
};

const optional = {
  callBackUrl: {
    initial: null,
    schema: z.string().nullable(),
    meaning: "Used for commands without their own URL (section 4.1) and without one in callBackUrlByCommand",
    check: callBackUrlProblems,
  } as PartnerSetting<string | null>,
  callBackUrlByCommand: {
    initial: {},
    schema: z.partialRecord(z.enum(notifiedCommands), z.string()),
    meaning: "Used in place of callBackUrl for these commands; a change names all of them",
    check: callBackUrlByCommandProblems,
  } as PartnerSetting<Readonly<Partial<Record<NotifiedCommand, string>>>>,
  callBackUrlChange: choice(
    ["operator", "partner"],
    "operator",
    "partner: it may change its registered URLs itself, each once the new one has accepted a test IPN",
  ),
  callbackCa: {
    initial: null,
    schema: z.string().nullable(),
    meaning: "PEM: the authorities that alone may vouch for a callback's server",
    check: callbackCaProblems,
  } as PartnerSetting<string | null>,
  callbackPins: {
    initial: [],
    schema: z.array(z.string()).max(callbackTlsBounds.pinsMax),
    meaning: "sha256/ and base64 of the SPKI's SHA-256: the server's public key must be one of these",
    check: callbackPinProblems,
  } as PartnerSetting<readonly string[]>,
  callbackPorts: {
    initial: null,
    schema: z.array(z.int().min(1).max(65_535)).min(1).max(callbackTlsBounds.portsMax).nullable(),
    meaning: "Ports that a callback may have; null: any",
    check: callbackPortProblems,
  } as PartnerSetting<readonly number[] | null>,
  contactMails: {
    initial: [],
    schema: z.array(z.string()).max(contactMailsMax),
    meaning: "Mail addresses that are told when deliveries fail, before parking begins, and when all is received again",
    check: contactMailProblems,
  } as PartnerSetting<readonly string[]>,
  contactUrl: {
    initial: null,
    schema: z.string().nullable(),
    meaning: "A URL that is told the same, signed with the webhook secret; by the rules of a callback's",
    check: callBackUrlProblems,
  } as PartnerSetting<string | null>,
  contract: choice(contractVersions, contractVersion, "The version of the notification contract that is sent"),
  cipher: choice(ciphers, defaultSealing.cipher, "How IPNs are encrypted"),
  encoding: choice(encodings, defaultSealing.encoding, "How encrypted bytes are written; jwe has its own way"),
  signing: {
    initial: defaultSigning,
    schema: z.union([
      z.strictObject({
        mode: z.literal("fields"),
        card: z.array(z.string()).optional(),
        settlement: z.array(z.string()).optional(),
      }),
      z.strictObject({ mode: z.literal("whole") }),
    ]),
    meaning: "fields: the specification's order, or the agreed lists; whole: RFC 8785 of the whole IPN",
    check: signingShapeProblems,
  } as PartnerSetting<Signing>,
  wireNames: choice(wireNames, "table", "Names of fields: as the specification's table or its sample spells them"),
  fields: choice(
    fieldSets,
    "specification",
    "extended: card IPNs also have command, originalId and originalReqId, settlement IPNs command and currency; " +
      "signed after the specification's fields",
  ),
  transactionTypes: {
    initial: defaultTypes,
    schema: z.partialRecord(z.enum([...notifiedCommands, "VOID_PREAUTH"]), z.enum(transactionTypes)),
    meaning: "The transaction_type of each command's IPN",
    check: transactionTypeProblems,
  } as PartnerSetting<TransactionTypes>,
  swipeTypes: choice(["code", "contact"], "code", "contact: sends C as CL and CTL as CLS"),
  settlementTotal: choice(["sum", "net"], "sum", "totalAmount: Sales plus Voids, or Sales less Voids"),
  transactionTime: choice(["table", "iso8601"], "table", "Its format: the specification's table, or ISO 8601"),
  timeZone: {
    initial: "UTC",
    schema: z.string(),
    meaning: "IANA name, such as Asia/Ho_Chi_Minh",
    check: timeZoneProblems,
  } as PartnerSetting<string>,
  ordering: choice(["chain", "none"], "chain", "chain: an IPN waits until the earlier ones of its chain are delivered"),
  retry: {
    initial: defaultRetrySeconds,
    schema: z.array(z.int().min(1).max(retryBounds.stepSecondsMax)).min(1).max(retryBounds.stepsMax),
    meaning: "Seconds to wait after each failed attempt",
    check: retryProblems,
  } as PartnerSetting<readonly number[]>,
  maxInFlight: wholeNumber(1, 512, 32, "Attempts under way at the same time"),
  maxPerSecond: {
    initial: null,
    schema: z.int().min(1).max(perSecondMax).nullable(),
    meaning: "Attempts a second; null: no limit",
    check: (field, value) => (value === null ? [] : wholeNumberProblems(field, value, 1, perSecondMax)),
  } as PartnerSetting<number | null>,
  terminals: choice(["open", "registered"], "open", "open: a terminal is known from its first command on"),
  refunds: choice(
    ["off", "silent", "notified"],
    "off",
    "off: a REFUND is refused; silent: it is run, without an IPN; notified: with one, which the specification lacks",
  ),
  reports: reportsSetting,
};

/** The settings of a partner, in the order in which the API names them. */
export const partnerSettings = { ...required, ...optional };

export type PartnerSettings = ValuesOf<typeof partnerSettings>;

export type DefaultSettings = ValuesOf<typeof optional>;

export const defaultSettings: DefaultSettings = initialValues(optional);

/** The input of a registration: a name and both address lists are required; everything else has a default. */
export type PartnerInput = ValuesOf<typeof required> &
  Partial<Omit<DefaultSettings, "transactionTypes" | "reports">> & {
    /** Only those that differ from the specification's. */
    readonly transactionTypes?: Partial<TransactionTypes>;
    readonly reports?: Partial<ReportSettings>;
  };

/** A registration with its defaults. Call it only without `settingsProblems`. */
export function completeSettings(input: PartnerInput, defaults: DefaultSettings = defaultSettings): PartnerSettings {
  const given = Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined)) as PartnerInput;
  return {
    ...defaults,
    ...given,
    transactionTypes: { ...defaults.transactionTypes, ...input.transactionTypes },
    reports: { ...defaults.reports, ...input.reports },
  };
}

/** Everything wrong with a registration. */
export function settingsProblems(
  input: Readonly<Record<string, unknown>> | PartnerInput,
  rules: CallbackUrlRules,
): FieldProblem[] {
  const values: Readonly<Record<string, unknown>> = { ...input };
  const missing = Object.keys(required)
    .filter((field) => values[field] === undefined)
    .map((field): FieldProblem => ({ field, code: "missing_field", message: `${field} is missing.` }));
  return [...missing, ...tableProblems(partnerSettings, values, { rules, values })];
}

function callBackUrlByCommandProblems(field: string, value: unknown, context: SettingContext): FieldProblem[] {
  if (!isObject(value)) return [wrongType(field, "an object from commands to URLs")];
  return Object.entries(value).flatMap(([command, url]) => {
    const at = `${field}.${command}`;
    if (!notifiedCommands.some((notified) => notified === command)) {
      return [unknownField(at, `is no command that is notified: ${notifiedCommands.join(", ")}`)];
    }
    return typeof url === "string" ? callBackUrlProblems(at, url, context) : [wrongType(at, "a text")];
  });
}

function callBackUrlProblems(field: string, value: unknown, { rules, values }: SettingContext): FieldProblem[] {
  const { callbackAddresses: addresses, callbackPorts: ports = null } = values;
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
  if (value.length > nameCharactersMax) return [tooLong(field, `has over ${nameCharactersMax} characters`)];
  if (value.trim() === "") return [invalid(field, "must not be empty")];
  if (/\p{Cc}/u.test(value) || !value.isWellFormed()) return [invalid(field, "must not hold control characters")];
  return [];
}

function addressProblems(field: string, value: unknown, countMin: number): FieldProblem[] {
  if (!Array.isArray(value)) return [wrongType(field, "a list of CIDRs")];
  if (value.length < countMin) return [invalid(field, "must hold at least one CIDR")];
  if (value.length > addressesMax) return [tooLong(field, `holds over ${addressesMax} CIDRs`)];
  return value.flatMap((entry: unknown, at) => {
    if (typeof entry !== "string") return [wrongType(`${field}[${at}]`, "a text")];
    if (parseBlock(entry) !== undefined) return [];
    return [invalid(`${field}[${at}]`, "must be a CIDR such as 203.0.113.0/24 or 2001:db8::/32")];
  });
}

function contactMailProblems(field: string, value: unknown): FieldProblem[] {
  if (!Array.isArray(value)) return [wrongType(field, "a list of mail addresses")];
  if (value.length > contactMailsMax) return [tooLong(field, `holds over ${contactMailsMax} addresses`)];
  return value.flatMap((entry: unknown, at) => {
    if (typeof entry !== "string") return [wrongType(`${field}[${at}]`, "a text")];
    const isMail = /^[^\s\p{Cc}<>()[\]",;:\\@]+@[a-z0-9.-]+$/iu.test(entry) && entry.isWellFormed();
    if (isMail && entry.length <= mailCharactersMax) return [];
    return [invalid(`${field}[${at}]`, "must be a mail address such as ops@shop.example")];
  });
}

/** Mail to a partner needs the service's mail server. */
export function contactProblems(contactMails: unknown, sendsMail: boolean): FieldProblem[] {
  if (sendsMail || !Array.isArray(contactMails) || contactMails.length === 0) return [];
  const needed = "PAYBELL_ALERT_MAIL_URL and PAYBELL_ALERT_MAIL_FROM are not set";
  return [invalid("contactMails", `cannot be used, because the service sends no mail: ${needed}`)];
}

function signingShapeProblems(field: string, value: unknown, { values }: SettingContext): FieldProblem[] {
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
    return unknown.map((name) => unknownField(`${field}.${name}`, "is not known"));
  }
  if (value["mode"] === "whole" && lists.length > 0) {
    return lists.map((name) => invalid(`${field}.${name}`, "has no place beside mode whole, which signs every field"));
  }
  const fields: FieldSet = values["fields"] === "extended" ? "extended" : "specification";
  return signingProblems(value as unknown as Signing, fields).map((message) => ({
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
    if (!Object.hasOwn(defaultTypes, command)) return [unknownField(at, "is no command that is notified")];
    return choiceProblems(at, type, transactionTypes);
  });
}

function timeZoneProblems(field: string, value: unknown): FieldProblem[] {
  if (typeof value !== "string") return [wrongType(field, "a text")];
  // Intl accepts offsets such as +07:00 too, but an offset has no daylight saving time.
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
  if (value.length < 1 || value.length > retryBounds.stepsMax)
    return [invalid(field, `must hold 1 to ${retryBounds.stepsMax} steps`)];
  return value.flatMap((step, at) => wholeNumberProblems(`${field}[${at}]`, step, 1, retryBounds.stepSecondsMax));
}

/** A schedule that ends too late: what is still pending would lose its history. */
export function scheduleProblems(retry: unknown, historyDays: number): FieldProblem[] {
  if (!Array.isArray(retry) || retryProblems("retry", retry).length > 0) return [];
  const daysMax = historyDays - historyMarginDays;
  if (scheduleDays(retry) <= daysMax) return [];
  const why = `${historyMarginDays} less than PAYBELL_HISTORY_DAYS (${historyDays})`;
  return [invalid("retry", `must last at most ${daysMax} days in all, ${why}`)];
}

const kinds: readonly IpnKind[] = ["card", "settlement"];

/** Settings whose change needs an admin, and the second one where two are needed, if it lowers the protection. */
const lowers: Readonly<Record<string, (before: PartnerSettings, after: PartnerSettings) => boolean>> = {
  /** Anybody may change what this cipher encrypts, unless the receiver verifies the signature first. */
  cipher: (before, after) => after.cipher === "aes-256-cbc" && before.cipher !== after.cipher,
  signing: (before, after) =>
    kinds.some((kind) => {
      const signed = signedFields(kind, after.signing);
      return signedFields(kind, before.signing).some((field) => !signed.includes(field));
    }),
  callbackCa: (before, after) => before.callbackCa !== null && before.callbackCa !== after.callbackCa,
  // A further key is one more that may pose as the partner's server.
  callbackPins: (before, after) =>
    before.callbackPins.length > 0 &&
    (after.callbackPins.length === 0 || after.callbackPins.some((pin) => !before.callbackPins.includes(pin))),
  callingAddresses: (before, after) => {
    const open = before.callingAddresses.map(requireBlock);
    return after.callingAddresses
      .map(requireBlock)
      .some((block) => !open.some((known) => known.bits <= block.bits && matches(known, block.network)));
  },
};

/** The settings by which a change weakens what protects a partner's notifications and its API. */
export function loweredSettings(before: PartnerSettings, after: PartnerSettings): readonly string[] {
  return Object.keys(lowers).filter((setting) => lowers[setting]?.(before, after));
}
