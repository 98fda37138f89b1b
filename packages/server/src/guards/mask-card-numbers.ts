import { betweenDigits, decodings, holdsCardNumber, withoutEscapes } from "./card-number.ts";

const removed = "[removed: it holds what looks like card data]";
/** As many digits as a card number has, with possible separators. */
const candidate = /\d(?:[ \t-]{0,3}\d){12,18}/g;
const endOfCut = new RegExp(`\\d(?:[${betweenDigits}]{0,3}\\d){7,18}[${betweenDigits}]{0,3}$`, "u");
/** The beginning of an escape or of a percent-encoded byte. */
const endOfEscape = /(?:%[0-9a-f]?|\\u?[0-9a-f]{0,3})$/i;
const firstShown = 6;
const lastShown = 4;

/**
 * Makes another server's response fit to be stored and shown: card numbers in it are masked, and it is dropped if one
 * is hidden in another way.
 *
 * @param cutAt the number of bytes kept of a response: one of that length may end within a number
 */
export function maskCardNumbers(bytes: Buffer, cutAt = Number.POSITIVE_INFINITY): Buffer {
  const text = bytes.toString("utf8");
  const isCut = bytes.length >= cutAt && endOfCut.test(text);
  if (bytes.length >= cutAt && !isCut && endsInHidden(text)) return Buffer.from(removed);
  if (!isCut && !holdsCardNumber(text)) return bytes;
  const whole = isCut ? text.replace(endOfCut, (digits) => masked(digits, 0)) : text;
  const shown = whole.replace(candidate, (digits) => (holdsCardNumber(digits) ? masked(digits, lastShown) : digits));
  return Buffer.from(holdsCardNumber(shown) ? removed : shown);
}

/** Whether it ends within a number whose digits are escaped or encoded. */
function endsInHidden(text: string): boolean {
  return decodings(withoutEscapes(text.replace(endOfEscape, ""))).some((decoded) => endOfCut.test(decoded));
}

function masked(digits: string, shownAtEnd: number): string {
  const count = digits.replace(/\D/g, "").length;
  let at = 0;
  return digits.replace(/[ \t-]{0,3}\d/g, (digit) => {
    at += 1;
    return at <= firstShown || at > count - shownAtEnd ? digit : "*";
  });
}
