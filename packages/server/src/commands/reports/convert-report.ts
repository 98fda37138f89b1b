import { cardSchemes, currencyDecimals } from "@paybell/contract";
import { responseCodeOf } from "../../response-codes.ts";
import { formatAmount } from "../amount.ts";
import type { CompletionRequest } from "./completion.ts";

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

/** Whether it has an amount in the smallest unit of a currency that it does not name: zero is the same in any. */
export function isOfUnknownUnit(completion: CompletionRequest): boolean {
  const isDigits = (amount: string) => minorPattern.test(amount) && /[1-9]/.test(amount);
  return (completion.currency ?? "") === "" && amounts.some((name) => isDigits(completion[name] ?? ""));
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

/** ISO 4217, list one: each code with its number, which ISO 8583 carries in field 49. */
const numbered = `
    AED784 AFN971 ALL008 AMD051 AOA973 ARS032 AUD036 AWG533 AZN944 BAM977 BBD052 BDT050 BHD048 BIF108 BMD060 BND096
    BOB068 BOV984 BRL986 BSD044 BTN064 BWP072 BYN933 BZD084 CAD124 CDF976 CHE947 CHF756 CHW948 CLF990 CLP152 CNY156
    COP170 COU970 CRC188 CUP192 CVE132 CZK203 DJF262 DKK208 DOP214 DZD012 EGP818 ERN232 ETB230 EUR978 FJD242 FKP238
    GBP826 GEL981 GHS936 GIP292 GMD270 GNF324 GTQ320 GYD328 HKD344 HNL340 HTG332 HUF348 IDR360 ILS376 INR356 IQD368
    IRR364 ISK352 JMD388 JOD400 JPY392 KES404 KGS417 KHR116 KMF174 KPW408 KRW410 KWD414 KYD136 KZT398 LAK418 LBP422
    LKR144 LRD430 LSL426 LYD434 MAD504 MDL498 MGA969 MKD807 MMK104 MNT496 MOP446 MRU929 MUR480 MVR462 MWK454 MXN484
    MXV979 MYR458 MZN943 NAD516 NGN566 NIO558 NOK578 NPR524 NZD554 OMR512 PAB590 PEN604 PGK598 PHP608 PKR586 PLN985
    PYG600 QAR634 RON946 RSD941 RUB643 RWF646 SAR682 SBD090 SCR690 SDG938 SEK752 SGD702 SHP654 SLE925 SOS706 SRD968
    SSP728 STN930 SVC222 SYP760 SZL748 THB764 TJS972 TMT934 TND788 TOP776 TRY949 TTD780 TWD901 TZS834 UAH980 UGX800
    USD840 USN997 UYI940 UYU858 UYW927 UZS860 VED926 VES928 VND704 VUV548 WST882 XAD396 XAF950 XCD951 XCG532 XOF952
    XPF953 YER886 ZAR710 ZMW967 ZWG924`;

const codeOfNumber: ReadonlyMap<string, string> = new Map(
  numbered
    .trim()
    .split(/\s+/)
    .map((pair): [string, string] => [pair.slice(3), pair.slice(0, 3)]),
);

/** The code for a three-digit ISO 4217 number, such as VND for 704; undefined if there is none. */
export function currencyOfNumber(number: string): string | undefined {
  return codeOfNumber.get(number);
}
