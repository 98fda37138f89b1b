import { currencyDecimals } from "@paybell/contract";
import type { AcquirerMessage, AuthorisationMessage, BatchTotals, OriginalReference } from "../../acquirer.ts";
import { IsoFormatError } from "../message/element.ts";
import type { Profile } from "./schema.ts";

/** One of the link's own messages. */
export interface NetworkMessage {
  readonly command: "NETWORK";
  readonly traceNo: string;
  readonly atMs: number;
}

export type Described = AcquirerMessage | NetworkMessage;

/** A profile, and what is derived from it once. */
export interface HostValues {
  readonly profile: Profile;
  readonly local: ZonedTime;
  readonly transmission: ZonedTime;
}

export function hostValues(profile: Profile): HostValues {
  const { localTimeZone, transmissionTimeZone } = profile;
  return { profile, local: new ZonedTime(localTimeZone), transmission: new ZonedTime(transmissionTimeZone) };
}

type Value = (message: Described, host: HostValues) => string;

/** The values that a template may name, as this host writes them; empty if a message has none. */
const values = {
  traceNo: ({ traceNo }) => traceNo,
  /** MMDDhhmmss. */
  transmission: ({ atMs }, { transmission }) => transmission.dateAndTime(atMs),
  localTime: ({ atMs }, { local }) => local.dateAndTime(atMs).slice(4),
  localDate: ({ atMs }, { local }) => local.dateAndTime(atMs).slice(0, 4),
  /** YYMMDDhhmmss: field 12 of ISO 8583:1993. */
  localDateTime: ({ atMs }, { local }) => local.withYear(atMs),
  tid: (message) => ("tid" in message ? message.tid : ""),
  mid: (message) => ("mid" in message ? message.mid : ""),
  batchNo: (message) => ("batchNo" in message ? message.batchNo : ""),
  invoiceNo: (message) => ("invoiceNo" in message ? message.invoiceNo : ""),
  cardToken: (message) => ("cardToken" in message ? (message.cardToken ?? "") : ""),
  /** YYMM, as field 14 has it. */
  expDate: (message) => ("expDate" in message ? yearAndMonth(message.expDate ?? "") : ""),
  sequenceNumber: (message) => ("sequenceNumber" in message ? (message.sequenceNumber ?? "") : ""),
  track2: (message) => ("track2" in message ? (message.track2 ?? "").toUpperCase() : ""),
  pinBlock: (message) => ("pinBlock" in message ? (message.pinBlock ?? "").toUpperCase() : ""),
  emv: (message) => ("emv" in message ? (message.emv ?? "").toUpperCase() : ""),
  /** 1 if the command accepts an approval of a part of its amount, otherwise 0. */
  allowPartial: (message) => (isAuthorisation(message) ? (message.allowPartial === true ? "1" : "0") : ""),
  entryMode: (message, { profile: { entryModes } }) =>
    "swipeType" in message ? (entryModes[message.swipeType ?? ""] ?? entryModes[""] ?? "") : "",
  /** In the host's smallest unit. */
  amount: (message, host) => ("amountMinor" in message ? amount(message.amountMinor, message.currency, host) : ""),
  /** Three digits of ISO 4217. */
  currency: (message, host) => {
    const currency = currencyOf(message);
    return currency === "" ? "" : currencyAt(host, currency).number;
  },
  originalMti: ofOriginal(({ command }, { profile }) => profile.messages[command]?.mti ?? ""),
  originalProcessingCode: ofOriginal(({ command }, { profile }) => profile.messages[command]?.fields["3"] ?? ""),
  originalTid: ofOriginal(({ tid }) => tid),
  originalTraceNo: ofOriginal(({ traceNo }) => traceNo),
  originalTransmission: ofOriginal(({ atMs }, { transmission }) => transmission.dateAndTime(atMs)),
  originalLocalTime: ofOriginal(({ atMs }, { local }) => local.dateAndTime(atMs).slice(4)),
  originalLocalDate: ofOriginal(({ atMs }, { local }) => local.dateAndTime(atMs).slice(0, 4)),
  originalLocalDateTime: ofOriginal(({ atMs }, { local }) => local.withYear(atMs)),
  originalApproveCode: ofOriginal(({ approveCode }) => approveCode),
  originalRefId: ofOriginal(({ refId }) => refId),
  /** The processing code of a Batch Upload: the Void's, if the uploaded transaction was voided. */
  uploadedProcessingCode: (message, { profile: { messages } }) => {
    if (message.command !== "BATCH_UPLOAD") return "";
    return messages[message.voided ? "VOID" : message.uploaded.command]?.fields["3"] ?? "";
  },
  saleQuantity: (message) => (message.command === "SETTLEMENT" ? `${message.totals.saleQuantity}` : ""),
  saleTotal: ofTotals(({ saleTotalMinor }) => saleTotalMinor),
  voidQuantity: (message) => (message.command === "SETTLEMENT" ? `${message.totals.voidQuantity}` : ""),
  voidTotal: ofTotals(({ voidTotalMinor }) => voidTotalMinor),
  refundQuantity: (message) => (message.command === "SETTLEMENT" ? `${message.totals.refundQuantity}` : ""),
  refundTotal: ofTotals(({ refundTotalMinor }) => refundTotalMinor),
  /** Sales that were not voided, for hosts that count them so. */
  unvoidedQuantity: (message) =>
    message.command === "SETTLEMENT" ? `${message.totals.saleQuantity - message.totals.voidQuantity}` : "",
  unvoidedTotal: ofTotals(({ saleTotalMinor, voidTotalMinor }) => saleTotalMinor - voidTotalMinor),
  /** The net amount, Refunds deducted, and whether that is to the merchant's credit. */
  netTotal: ofTotals((totals) => (netOf(totals) < 0n ? -netOf(totals) : netOf(totals))),
  netSign: (message) => (message.command === "SETTLEMENT" ? (netOf(message.totals) < 0n ? "D" : "C") : ""),
} satisfies Record<string, Value>;

export type ValueName = keyof typeof values;

export const valueNames = Object.keys(values) as readonly ValueName[];

/** @throws IsoFormatError if the host does not accept the currency */
export function valueIn(name: ValueName, message: Described, host: HostValues): string {
  return values[name](message, host);
}

function isAuthorisation(message: Described): message is AuthorisationMessage {
  return message.command === "SALE" || message.command === "PREAUTH";
}

/** Four digits are taken to be YYMM already; a masked date says nothing. */
function yearAndMonth(expiry: string): string {
  const [, month = "", year = ""] = /^(\d\d)\/(?:\d\d)?(\d\d)$/.exec(expiry) ?? [];
  if (month !== "") return year + month;
  const digits = expiry.replace(/^\d\d(\d\d)-/, "$1");
  return /^\d{4}$/.test(digits) ? digits : "";
}

function ofOriginal(read: (original: OriginalReference, host: HostValues) => string): Value {
  return (message, host) => {
    if ("original" in message) return read(message.original, host);
    return "uploaded" in message ? read(message.uploaded, host) : "";
  };
}

function netOf({ saleTotalMinor, voidTotalMinor, refundTotalMinor }: BatchTotals): bigint {
  return saleTotalMinor - voidTotalMinor - refundTotalMinor;
}

function ofTotals(read: (totals: BatchTotals) => bigint): Value {
  return (message, host) =>
    message.command === "SETTLEMENT" ? amount(read(message.totals), message.totals.currency, host) : "";
}

/** Empty: an empty batch's, and that of a message without money. */
function currencyOf(message: Described): string {
  if ("currency" in message) return message.currency;
  return message.command === "SETTLEMENT" ? message.totals.currency : "";
}

function amount(minor: bigint, currency: string, host: HostValues): string {
  if (currency === "") return minor.toString();
  const { exponent } = currencyAt(host, currency);
  const decimals = currencyDecimals(currency) ?? exponent;
  return (minor * 10n ** BigInt(exponent - decimals)).toString();
}

function currencyAt({ profile: { name, currencies } }: HostValues, currency: string) {
  const found = currencies[currency];
  if (found === undefined) throw new IsoFormatError(`the host ${name} takes no ${currency}`);
  return found;
}

/** Zones change their offset at a quarter of an hour, if at all. */
const quarterMs = 900_000;

/** Times as a zone's clocks show them. */
export class ZonedTime {
  readonly #format: Intl.DateTimeFormat;
  #quarter = Number.NaN;
  #offsetMs = 0;

  constructor(timeZone: string) {
    this.#format = new Intl.DateTimeFormat("en-US", {
      timeZone,
      calendar: "gregory",
      numberingSystem: "latn",
      hourCycle: "h23",
      year: "numeric",
      month: "numeric",
      day: "numeric",
      hour: "numeric",
      minute: "numeric",
      second: "numeric",
    });
  }

  /** MMDDhhmmss. */
  dateAndTime(atMs: number): string {
    return this.withYear(atMs).slice(2);
  }

  /** YYMMDDhhmmss. */
  withYear(atMs: number): string {
    return new Date(atMs + this.#offsetAt(atMs)).toISOString().slice(2, 19).replaceAll(/[-T:]/g, "");
  }

  /** Remembered: to ask for it takes longer than to pack a whole message. */
  #offsetAt(atMs: number): number {
    const quarter = Math.floor(atMs / quarterMs);
    if (quarter === this.#quarter) return this.#offsetMs;
    const shown = new Map(this.#format.formatToParts(atMs).map(({ type, value }) => [type, Number(value)]));
    const part = (name: Intl.DateTimeFormatPartTypes) => shown.get(name) ?? 0;
    const shownMs = Date.UTC(
      part("year"),
      part("month") - 1,
      part("day"),
      part("hour"),
      part("minute"),
      part("second"),
    );
    this.#quarter = quarter;
    this.#offsetMs = shownMs - Math.floor(atMs / 1_000) * 1_000;
    return this.#offsetMs;
  }
}
