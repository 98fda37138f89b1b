import { merchantIdHoldsCardNumber, passesLuhn } from "../../../guards/card-number.ts";
import type { IsoMessage } from "./codec.ts";

/** Always 42 digits of numbers and times, in which some would pass for a card number by chance. */
const originalElementsField = 90;
/** Amounts of 16 digits, their leading zeros included: one in ten would pass for a card number. */
const totalsFields: ReadonlySet<number> = new Set([86, 87, 88, 89, 97]);
/**
 * Fields that by their meaning contain no card data: amounts, times, numbers, codes, the terminal. Any other field
 * (tracks, expiry, PIN, chip data, MAC, private fields) is shown by its length only.
 */
const shownAlways: ReadonlySet<number> = new Set([
  ...[3, 4, 5, 7, 11, 12, 13, 15, 16, 17, 18, 19, 22, 23, 24, 25, 26, 32, 33, 37, 38, 39, 41, 42, 43, 49, 50, 51],
  ...[66, 70, 74, 75, 76, 77, 86, 87, 88, 89, originalElementsField, 97],
]);

/** Fields that a profile must not have shown. */
export const neverShown: ReadonlySet<number> = new Set([2, 14, 20, 34, 35, 36, 45, 52, 53, 55, 64, 96, 128]);

const cardNumberField = 2;
const midField = 42;
const cardNumberRun = /[0-9]{13,19}/g;

/** Private fields that this host's profile lets a trace show. */
export interface ShownFields {
  /** Fields that hold no card data, such as 60 and 62. */
  readonly also: ReadonlySet<number>;
  /** Fields that hold a batch's totals in a Settlement and its answer, such as 63. */
  readonly totals: ReadonlySet<number>;
}

/**
 * A message in readable form, a line for each field, without secrets: a card number shows
 * its first six and last four digits.
 */
export function maskedLines({ mti, fields }: IsoMessage, { also, totals }: ShownFields): string[] {
  const isSettlement = mti[1] === "5";
  const lines = [...fields].map(([number, value]) => {
    const isTotal = totalsFields.has(number) || (isSettlement && totals.has(number));
    const isShown = shownAlways.has(number) || ((isTotal || also.has(number)) && !neverShown.has(number));
    return `${number.toString().padStart(3)}  ${maskedField(number, value, { isShown, isTotal })}`;
  });
  return [`MTI  ${mti}`, ...lines];
}

function maskedField(
  number: number,
  value: string,
  { isShown, isTotal }: { readonly isShown: boolean; readonly isTotal: boolean },
): string {
  if (number === cardNumberField) return maskedCardNumber(value);
  if (!isShown) return `(${value.length} characters, not shown)`;
  if (number === originalElementsField || isTotal) return printable(value);
  const isCardNumber = number === midField ? merchantIdHoldsCardNumber : passesLuhn;
  return printable(value).replaceAll(cardNumberRun, (digits) =>
    isCardNumber(digits) ? maskedCardNumber(digits) : digits,
  );
}

function maskedCardNumber(digits: string): string {
  if (digits.length < 13) return "*".repeat(digits.length);
  return `${digits.slice(0, 6)}${"*".repeat(digits.length - 10)}${digits.slice(-4)}`;
}

/** A host's text must not move the cursor of the terminal that shows it. */
function printable(text: string): string {
  return text.replaceAll(/[^ -~]/g, "?");
}
