/** The types of the specification, and that of a REFUND, which only partners with an agreement receive. */
export const transactionTypes = ["SALE", "VOID", "SETTLE", "CANCEL", "REFUND"] as const;
export type TransactionType = (typeof transactionTypes)[number];

/** Section 3. */
export const statuses = ["INIT", "SUCCESS", "ERROR"] as const;
export type Status = (typeof statuses)[number];

export const cardSchemes = ["VISA", "JCB", "MASTER", "AMEX", "UPI"] as const;
export type CardScheme = (typeof cardSchemes)[number];

/** Section 2.2, field 22. */
export const paymentTypes = ["card", "card_api", "qrmo", "qrmo_api", "card_mobile"] as const;
export type PaymentType = (typeof paymentTypes)[number];
export const defaultPaymentType: PaymentType = "card";

/** Section 2.4, and the two codes of section 2.2, field 26. */
export const swipeTypes = [
  { code: "F", meaning: "Fallback: used when the card chip is damaged" },
  { code: "C", meaning: "Chip: card chip read" },
  { code: "CTL", meaning: "Contactless: NFC" },
  { code: "M", meaning: "Manual: card data entered on the device" },
  { code: "S", meaning: "Swipe: magnetic stripe" },
  { code: "CL", meaning: "Contact" },
  { code: "CLS", meaning: "Contactless" },
] as const;
export type SwipeType = (typeof swipeTypes)[number]["code"];

/** Common AID values, all of type EMV: section 2.4. */
export const aids = [
  { aid: "A0000000031010", scheme: "VISA", kind: "debit/credit classic (standard/gold credit)" },
  { aid: "A00000000401", scheme: "MASTER", kind: "credit/debit global" },
  { aid: "A0000000651010", scheme: "JCB", kind: "credit" },
  { aid: "A000000333010101", scheme: "UPI", kind: "debit" },
  { aid: "A000000333010102", scheme: "UPI", kind: "credit" },
  { aid: "A0000000250000", scheme: "AMEX", kind: "credit/debit" },
] as const satisfies readonly { aid: string; scheme: CardScheme; kind: string }[];

/** An AID begins with its scheme's RID: 5 bytes, registered under ISO/IEC 7816-5. */
const ridHexDigits = 10;

const schemeByRid: ReadonlyMap<string, CardScheme> = new Map(
  aids.map(({ aid, scheme }) => [aid.slice(0, ridHexDigits), scheme]),
);

/**
 * The card scheme of an AID, found by its first 10 hex digits in either case, so that AIDs outside the table have one
 * too. Empty for a RID that the table does not contain.
 */
export function cardSchemeFor(aid: string): CardScheme | "" {
  return schemeByRid.get(aid.slice(0, ridHexDigits).toUpperCase()) ?? "";
}

/** Whether the AID is known to belong to another scheme than `scheme`. An unknown AID contradicts nothing. */
export function contradicts(aid: string, scheme: string): boolean {
  const known = cardSchemeFor(aid);
  return known !== "" && scheme !== "" && known !== scheme.toUpperCase();
}

export interface ResponseCode {
  readonly code: string;
  readonly meaning: string;
}

/**
 * isoResponseCode: ISO 8583:1987, data element 39. Only 00 is success. Codes that are missing here are reserved by the
 * standard.
 */
export const responseCodes: readonly ResponseCode[] = [
  { code: "00", meaning: "Approved or completed successfully" },
  { code: "01", meaning: "Refer to card issuer" },
  { code: "02", meaning: "Refer to card issuer's special conditions" },
  { code: "03", meaning: "Invalid merchant" },
  { code: "04", meaning: "Pick up card" },
  { code: "05", meaning: "Do not honour" },
  { code: "06", meaning: "Error" },
  { code: "07", meaning: "Pick up card, special condition" },
  { code: "08", meaning: "Honour with identification" },
  { code: "09", meaning: "Request in progress" },
  { code: "10", meaning: "Approved for partial amount" },
  { code: "11", meaning: "Approved (VIP)" },
  { code: "12", meaning: "Invalid transaction" },
  { code: "13", meaning: "Invalid amount" },
  { code: "14", meaning: "Invalid card number (no such number)" },
  { code: "15", meaning: "No such issuer" },
  { code: "16", meaning: "Approved, update track 3" },
  { code: "17", meaning: "Customer cancellation" },
  { code: "18", meaning: "Customer dispute" },
  { code: "19", meaning: "Re-enter transaction" },
  { code: "20", meaning: "Invalid response" },
  { code: "21", meaning: "No action taken" },
  { code: "22", meaning: "Suspected malfunction" },
  { code: "23", meaning: "Unacceptable transaction fee" },
  { code: "24", meaning: "File update not supported by receiver" },
  { code: "25", meaning: "Unable to locate record on file" },
  { code: "26", meaning: "Duplicate file update record, old record replaced" },
  { code: "27", meaning: "File update field edit error" },
  { code: "28", meaning: "File update file locked out" },
  { code: "29", meaning: "File update not successful, contact acquirer" },
  { code: "30", meaning: "Format error" },
  { code: "31", meaning: "Bank not supported by switch" },
  { code: "32", meaning: "Completed partially" },
  { code: "33", meaning: "Expired card, pick up" },
  { code: "34", meaning: "Suspected fraud, pick up" },
  { code: "35", meaning: "Card acceptor contact acquirer, pick up" },
  { code: "36", meaning: "Restricted card, pick up" },
  { code: "37", meaning: "Card acceptor call acquirer security, pick up" },
  { code: "38", meaning: "Allowable PIN tries exceeded, pick up" },
  { code: "39", meaning: "No credit account" },
  { code: "40", meaning: "Requested function not supported" },
  { code: "41", meaning: "Lost card, pick up" },
  { code: "42", meaning: "No universal account" },
  { code: "43", meaning: "Stolen card, pick up" },
  { code: "44", meaning: "No investment account" },
  { code: "51", meaning: "Not sufficient funds" },
  { code: "52", meaning: "No chequing account" },
  { code: "53", meaning: "No savings account" },
  { code: "54", meaning: "Expired card" },
  { code: "55", meaning: "Incorrect personal identification number" },
  { code: "56", meaning: "No card record" },
  { code: "57", meaning: "Transaction not permitted to cardholder" },
  { code: "58", meaning: "Transaction not permitted to terminal" },
  { code: "59", meaning: "Suspected fraud" },
  { code: "60", meaning: "Card acceptor contact acquirer" },
  { code: "61", meaning: "Exceeds withdrawal amount limit" },
  { code: "62", meaning: "Restricted card" },
  { code: "63", meaning: "Security violation" },
  { code: "64", meaning: "Original amount incorrect" },
  { code: "65", meaning: "Exceeds withdrawal frequency limit" },
  { code: "66", meaning: "Card acceptor call acquirer's security department" },
  { code: "67", meaning: "Hard capture: pick up card at the terminal" },
  { code: "68", meaning: "Response received too late" },
  { code: "75", meaning: "Allowable number of PIN tries exceeded" },
  { code: "90", meaning: "Cutoff is in process" },
  { code: "91", meaning: "Issuer or switch is inoperative" },
  { code: "92", meaning: "Financial institution or intermediate network facility cannot be found for routing" },
  { code: "93", meaning: "Transaction cannot be completed, violation of law" },
  { code: "94", meaning: "Duplicate transmission" },
  { code: "95", meaning: "Reconcile error" },
  { code: "96", meaning: "System malfunction" },
];

const meanings: ReadonlyMap<string, string> = new Map(responseCodes.map(({ code, meaning }) => [code, meaning]));

/** The meaning of an isoResponseCode. A code outside the table is still an error (section 7). */
export function responseMeaning(code: string): string {
  return meanings.get(code) ?? "Error with a code that ISO 8583 does not list";
}

/**
 * ISO 4217, list one (current currency and funds codes), by the digits of the minor unit. Codes whose minor unit is
 * "N.A." (metals, testing, no currency) cannot be charged on a terminal, so they are left out.
 */
const codesByDecimals: Readonly<Record<number, string>> = {
  0: "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF",
  2: `AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BOV BRL BSD BTN BWP BYN BZD CAD CDF CHE CHF CHW CNY
    COP COU CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD HKD HNL HTG HUF IDR ILS INR
    IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MXV MYR MZN NAD
    NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP
    SZL THB TJS TMT TOP TRY TTD TWD TZS UAH USD USN UYU UZS VED VES WST XAD XCD XCG YER ZAR ZMW ZWG`,
  3: "BHD IQD JOD KWD LYD OMR TND",
  4: "CLF UYW",
};

/** Digits of the minor unit, by ISO 4217 code. */
export const currencies: ReadonlyMap<string, number> = new Map(
  Object.entries(codesByDecimals).flatMap(([decimals, codes]) =>
    codes.split(/\s+/).map((code): [string, number] => [code, Number(decimals)]),
  ),
);

/**
 * The number of decimals that an amount of this currency may have; undefined if ISO 4217 has no such code. Case
 * matters.
 */
export function currencyDecimals(code: string): number | undefined {
  return currencies.get(code);
}
