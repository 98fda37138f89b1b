import { currencyDecimals } from "@paybell/contract";
import { type ZoneFormat, zoneFormat } from "../../../time.ts";
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
  readonly local: ZoneFormat;
  readonly transmission: ZoneFormat;
}

export function hostValues(profile: Profile): HostValues {
  const { localTimeZone, transmissionTimeZone } = profile;
  return { profile, local: zoneFormat(localTimeZone), transmission: zoneFormat(transmissionTimeZone) };
}

type Value = (message: Described, host: HostValues) => string;

/** The values that a template may name, as this host writes them; empty if a message has none. */
const values = {
  traceNo: ({ traceNo }) => traceNo,
  /** MMDDhhmmss. */
  transmission: ({ atMs }, { transmission }) => transmission(atMs).slice(4),
  localTime: ({ atMs }, { local }) => local(atMs).slice(8),
  localDate: ({ atMs }, { local }) => local(atMs).slice(4, 8),
  /** YYMMDDhhmmss: field 12 of ISO 8583:1993. */
  localDateTime: ({ atMs }, { local }) => local(atMs).slice(2),
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
  originalTransmission: ofOriginal(({ atMs }, { transmission }) => transmission(atMs).slice(4)),
  originalLocalTime: ofOriginal(({ atMs }, { local }) => local(atMs).slice(8)),
  originalLocalDate: ofOriginal(({ atMs }, { local }) => local(atMs).slice(4, 8)),
  originalLocalDateTime: ofOriginal(({ atMs }, { local }) => local(atMs).slice(2)),
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

/** Four digits are MMYY if their last two are no month, otherwise YYMM. A masked date says nothing. */
function yearAndMonth(expiry: string): string {
  const withSlash = /^(\d\d)\/(?:\d\d)?(\d\d)$/;
  const [, month = "", year = ""] = withSlash.exec(expiry) ?? /^(\d\d)(00|1[3-9]|[2-9]\d)$/.exec(expiry) ?? [];
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
