import { cardSchemes, currencyDecimals } from "@paybell/contract";
import { responseCodeOf } from "../action-codes.ts";
import { formatAmount } from "./amount.ts";
import type { CompletionRequest } from "./completion.ts";
import { currencyOfNumber } from "./numeric-currency.ts";

/** The formats in which an operator's switch reports for a partner. */
export interface ReportFormat {
  /** `minor`: amounts are digits in the currency's smallest unit, as in ISO 8583 field 4. */
  readonly amounts: "major" | "minor";
  /** `1993`: isoResponseCode is a three-digit action code of ISO 8583:1993. */
  readonly responseCodes: "1987" | "1993";
  /** The cardScheme to send for a scheme name that is not in the table; a name missing here is sent empty. */
  readonly schemes: Readonly<Record<string, string>>;
}

type Text = string | undefined;

/**
 * Converts a report to the values of the specification's tables, before it is checked. Unreadable values are unchanged.
 */
export function convertReport(completion: CompletionRequest, agreement: ReportFormat): CompletionRequest {
  const currency = currencyOf(completion.currency);
  const converted: { -readonly [Name in keyof CompletionRequest]: CompletionRequest[Name] } = { ...completion };
  const change = (name: Mapped, map: (value: string) => string) => {
    const value = completion[name];
    if (value !== undefined && value !== "") converted[name] = map(value);
  };
  if (completion.currency !== undefined) converted.currency = currency;
  for (const name of amounts) change(name, (amount) => amountOf(amount, currency, agreement));
  change("cardScheme", (scheme) => schemeOf(scheme, agreement));
  change("isoResponseCode", (code) => codeOf(code, agreement));
  change("transDateTime", withoutLeapSecond);
  change("transaction_time", withoutLeapSecond);
  return converted;
}

const amounts = ["amount", "saleTotalAmount", "voidTotalAmount", "totalAmount"] as const;
type Mapped = (typeof amounts)[number] | "cardScheme" | "isoResponseCode" | "transDateTime" | "transaction_time";

function currencyOf(currency: Text): Text {
  return (currency && currencyOfNumber(currency)) ?? currency;
}

const minorPattern = /^\d{1,18}$/;
const fractionPattern = /^(\d+)\.(\d+)$/;

/** Extra decimals that are all zero are dropped: 150000.00 VND is 150000. */
function amountOf(amount: string, currency: Text, { amounts }: ReportFormat): string {
  const decimals = currencyDecimals(currency ?? "");
  if (decimals === undefined) return amount;
  if (amounts === "minor" && minorPattern.test(amount)) return formatAmount(BigInt(amount), decimals);
  const [, whole = "", fraction = ""] = fractionPattern.exec(amount) ?? [];
  if (fraction.length <= decimals || !/^0+$/.test(fraction.slice(decimals))) return amount;
  return decimals === 0 ? whole : `${whole}.${fraction.slice(0, decimals)}`;
}

/** Other names of the schemes, in capitals, without spaces and dashes. */
const otherNames: Readonly<Record<string, string>> = {
  MASTERCARD: "MASTER",
  MC: "MASTER",
  AMERICANEXPRESS: "AMEX",
  UNIONPAY: "UPI",
  CHINAUNIONPAY: "UPI",
  CUP: "UPI",
};

function schemeOf(scheme: string, { schemes }: ReportFormat): string {
  const name = scheme.toUpperCase().replace(/[ _-]/g, "");
  if (Object.hasOwn(schemes, scheme)) return schemes[scheme] ?? "";
  if (Object.hasOwn(schemes, name)) return schemes[name] ?? "";
  const known = Object.hasOwn(otherNames, name) ? otherNames[name] : name;
  return cardSchemes.find((table) => table === known) ?? "";
}

function codeOf(code: string, { responseCodes }: ReportFormat): string {
  return responseCodes === "1993" ? responseCodeOf(code) : code;
}

const leapSecondPattern = /^(?:\d{12}|\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:)60/;

/** Most readers refuse a leap second, so it becomes the second before it. */
function withoutLeapSecond(time: string): string {
  return time.replace(leapSecondPattern, (start) => `${start.slice(0, -2)}59`);
}
