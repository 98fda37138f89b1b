import { parseJson } from "@paybell/contract";
import { isSensitive, namesSensitive, pairsSensitive } from "./sensitive-keys.ts";

const digitsMin = 13;
const digitsMax = 19;

const long = [16, 17, 18, 19] as const;
/**
 * Diners Club has numbers of 15 digits too, but so do IMEIs: each passes Luhn, and their issuers' prefixes are 30 and
 * 50.
 */
const dinersLengths = [14, ...long] as const;
const maestroLengths = [13, 14, ...long] as const;

/** Prefixes of the card schemes, as ranges of first digits, with the lengths of their numbers. */
export const cardNumberRanges = [
  { from: "4", to: "4", lengths: [13, 16, 19] },
  { from: "51", to: "55", lengths: [16] },
  { from: "2221", to: "2720", lengths: [16] },
  { from: "34", to: "34", lengths: [15] },
  { from: "37", to: "37", lengths: [15] },
  { from: "3528", to: "3589", lengths: long },
  // UnionPay, RuPay, Discover.
  { from: "60", to: "60", lengths: long },
  { from: "62", to: "62", lengths: long },
  { from: "64", to: "65", lengths: long },
  { from: "81", to: "82", lengths: long },
  // Diners Club.
  { from: "30", to: "30", lengths: dinersLengths },
  { from: "36", to: "36", lengths: dinersLengths },
  { from: "38", to: "39", lengths: dinersLengths },
  // Maestro, with RuPay and Verve in 50.
  { from: "50", to: "50", lengths: long },
  { from: "5018", to: "5018", lengths: maestroLengths },
  { from: "5020", to: "5020", lengths: maestroLengths },
  { from: "5038", to: "5038", lengths: maestroLengths },
  { from: "56", to: "58", lengths: long },
  { from: "5893", to: "5893", lengths: maestroLengths },
  { from: "63", to: "63", lengths: long },
  { from: "6304", to: "6304", lengths: maestroLengths },
  { from: "67", to: "67", lengths: long },
  { from: "6759", to: "6763", lengths: maestroLengths },
  // Mir, Troy, NAPAS.
  { from: "2200", to: "2204", lengths: long },
  { from: "9792", to: "9792", lengths: [16] },
  { from: "9704", to: "9704", lengths: [16, 19] },
  // UATP.
  { from: "1", to: "1", lengths: [15] },
] as const;
/** Many acquirers' merchant ids have 15 digits and begin with 1: one in ten of them passes Luhn. */
const uatp = cardNumberRanges.at(-1);

/** C0 and C1 except line ends. */
const controls = "\\0-\\x09\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f";
const dashes = "\\-\\u2010-\\u2015\\u2212\\ufe58\\ufe63\\uff0d";
/**
 * All kinds of spaces and dashes, control characters, and bytes that are no UTF-8 (U+FFFD): they separate the groups of
 * one number.
 */
const parting = ` ${controls}\\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufffd${dashes}`;
/** Most texts end here: measured, 0.05 µs for an address, 13 µs with the patterns below. */
const enoughDigits = new RegExp(`(?:\\d[${parting}]*){${digitsMin}}`);
const partingMark = new RegExp(`[${parting}]`);
const beyondAscii = /[^\0-\x7f]/;
/** Digits of other scripts, such as Arabic ones: NFKC maps only some of them. */
const otherDigit = /(?![0-9])\p{Nd}/gu;
const decimal = /^\p{Nd}$/u;
/** At most one for each digit of Unicode. */
const digitValues = new Map<string, string>();
/** Invisible characters: format characters, fillers, variation selectors, joiners. */
const unseen = "\\p{Cf}\\p{Default_Ignorable_Code_Point}\\u2800";
const invisible = new RegExp(`[${unseen}]`, "gu");
/** The characters that do not end a number: the content of a character class, with the flag u. */
const betweenDigits = parting + unseen;
const percentEncoded = /(?:%[0-9a-f]{2})+/gi;
/** An encoding of an encoding of an encoding. */
const decodingsMax = 3;
/** With or without dashes, as a separate word: measured, one in 3,000 contains what would pass as a card number. */
const dashedUuid = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}";
const bareUuid = "[0-9a-f]{12}[1-8][0-9a-f]{3}[89ab][0-9a-f]{15}";
/**
 * MongoDB's ids and the digests of MD5, SHA-1 and SHA-256: one SHA-256 of 2,000 contains what would pass as a card
 * number. A track has a D between its number and its expiry, and no other letter but a filler.
 */
const digest = "(?!b?[0-9]{13,19}d[0-9]{4})(?=[0-9df]*[abce])(?:[0-9a-f]{24}|[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})";
const randomShaped = new RegExp(`(?<![0-9a-z])(?:${dashedUuid}|${bareUuid}|${digest})(?![0-9a-z])`, "gi");
const shortestRandom = 24;
const digitsOnly = /^\d+$/;
const jsonShaped = /^\s*[[{].*[\]}]\s*$/s;
/** One in 70 places on a map, `{"lat":…,"lng":…}`, contains what would pass as a card number. */
const stringOrFraction = /"(?:[^"\\]|\\.)*"?|(?<=[[:,\s])-?\d{1,3}\.\d+(?:[eE][+-]?\d+)?/gs;
/** The maximum nesting of JSON text in strings of JSON text. */
const jsonDepthMax = 8;
/** A key and its value, or the beginning of that. */
const jsonPair = /"([^"]{1,40})"\s{0,20}:\s{0,20}"?([^",}\]]{1,200})/g;
/** `cvv123` has six characters. */
const shortest = 6;

/**
 * Whether the text contains a full card number, also in strings of JSON text, however escaped, or a security code, PIN
 * or track that it names as such.
 *
 * A group of digits counts as a whole: a number is one group, or several consecutive ones, and never part of one,
 * because part of a longer reference would match by chance far more often than it would be a card.
 */
export function holdsCardNumber(text: string): boolean {
  if (text.length < shortest) return false;
  return groupsHoldCardNumber(text) || jsonHoldsCardNumber(text, jsonDepthMax);
}

/** The same for a merchant's id: some look like numbers of UATP cards. */
export function merchantIdHoldsCardNumber(text: string): boolean {
  return (
    holdsCardNumber(text) && !(text.length === 15 && digitsOnly.test(text) && uatp !== undefined && inRange(text, uatp))
  );
}

function groupsHoldCardNumber(given: string): boolean {
  let text = given;
  for (text of decodings(given)) if (plainHoldsCardNumber(text)) return true;
  // A form and a URL's query encode a space as +.
  return text.includes("+") && text.includes("=") && plainHoldsCardNumber(text.replaceAll("+", " "));
}

/** The text, and what it becomes as each layer of percent-encoding is removed. */
function decodings(given: string): readonly string[] {
  const texts = [given];
  let text = given;
  for (let layer = 0; layer < decodingsMax && text.includes("%"); layer += 1) {
    const encoded = text;
    // Bytes that are no UTF-8 become U+FFFD.
    text = encoded.replace(percentEncoded, (bytes) => Buffer.from(bytes.replaceAll("%", ""), "hex").toString("utf8"));
    if (text === encoded) break;
    texts.push(text);
  }
  return texts;
}

function plainHoldsCardNumber(given: string): boolean {
  const text = beyondAscii.test(given) ? plain(given) : given;
  if (pairsSensitive(text)) return true;
  if (!enoughDigits.test(text)) return false;
  if (digitsOnly.test(text)) return isCardNumber(text);
  const others = withoutRandom(text);
  let groups: string[] = [];
  for (let at = 0; at < others.length; at += 1) {
    if (isDigit(others, at)) {
      const from = at;
      while (isDigit(others, at + 1)) at += 1;
      groups.push(others.slice(from, at + 1));
    } else if (groups.length > 0 && !partingMark.test(others.charAt(at))) {
      if (runHoldsCardNumber(groups)) return true;
      groups = [];
    }
  }
  return runHoldsCardNumber(groups);
}

/** Without ids and digests, and without JSON's fractions outside of its strings. */
function withoutRandom(text: string): string {
  const others = text.length < shortestRandom ? text : text.replace(randomShaped, "|");
  if (!jsonShaped.test(others)) return others;
  return others.replace(stringOrFraction, (token) => (token.startsWith('"') ? token : "|"));
}

function plain(text: string): string {
  return text.normalize("NFKC").replace(invisible, " ").replace(otherDigit, valueOfDigit);
}

/** Unicode assigns decimal digits in runs of ten, each from zero to nine; some runs follow each other. */
function valueOfDigit(digit: string): string {
  const known = digitValues.get(digit);
  if (known !== undefined) return known;
  const codePoint = digit.codePointAt(0) ?? 0;
  let first = codePoint;
  while (decimal.test(String.fromCodePoint(first - 1))) first -= 1;
  const value = String((codePoint - first) % 10);
  digitValues.set(digit, value);
  return value;
}

function isDigit(text: string, at: number): boolean {
  const code = text.charCodeAt(at);
  return code >= 48 && code <= 57;
}

function runHoldsCardNumber(groups: readonly string[]): boolean {
  for (let first = 0; first < groups.length; first += 1) {
    let digits = "";
    for (let next = first; next < groups.length && digits.length < digitsMax; next += 1) {
      digits += groups[next];
      if (isCardNumber(digits)) return true;
    }
  }
  return false;
}

/** Whether digits without separators are a card number. */
export function isCardNumber(digits: string): boolean {
  if (digits.length < digitsMin || digits.length > digitsMax) return false;
  // The check digit first: it excludes nine of ten.
  return passesLuhn(digits) && cardNumberRanges.some((range) => inRange(digits, range));
}

function inRange(digits: string, range: (typeof cardNumberRanges)[number]): boolean {
  const prefix = digits.slice(0, range.from.length);
  const lengths: readonly number[] = range.lengths;
  return prefix >= range.from && prefix <= range.to && lengths.includes(digits.length);
}

export function passesLuhn(digits: string): boolean {
  let sum = 0;
  for (let place = 0; place < digits.length; place += 1) {
    const digit = digits.charCodeAt(digits.length - 1 - place) - 48;
    const doubled = place % 2 === 1 ? digit * 2 : digit;
    sum += doubled > 9 ? doubled - 9 : doubled;
  }
  return sum % 10 === 0;
}

/** Raw text shows digits as they are; only an escape or an exponent can hide them. A key must be a known one. */
function jsonHoldsCardNumber(text: string, depth: number): boolean {
  if (depth === 0 || !/^\s*[[{"]/.test(text) || !(/\\|\d[eE]/.test(text) || namesSensitive(text))) return false;
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return brokenJsonHoldsCardNumber(text);
  }
  return valueHoldsCardNumber(value, depth - 1);
}

/** JSON text that was cut off, or several after each other: its values are not known, but its escapes and keys are. */
function brokenJsonHoldsCardNumber(given: string): boolean {
  const text = withoutEscapes(given);
  if (groupsHoldCardNumber(text)) return true;
  return [...text.matchAll(jsonPair)].some(([, key = "", value = ""]) => isSensitive(key, value));
}

/** JSON text whose characters are written as they are, at any depth of text in text. */
function withoutEscapes(text: string): string {
  return text
    .replace(/\\+/g, "\\")
    .replace(/\\(?:u([0-9a-f]{4}))?/gi, (_, code?: string) =>
      code === undefined ? "" : String.fromCharCode(Number.parseInt(code, 16)),
    );
}

/** Without recursion, because the sender decides how deep arrays are nested. */
function valueHoldsCardNumber(root: unknown, depth: number): boolean {
  const pending = [root];
  while (pending.length > 0) {
    const value = pending.pop();
    if (typeof value === "string") {
      if (groupsHoldCardNumber(value) || jsonHoldsCardNumber(value, depth)) return true;
    } else if (typeof value === "number") {
      if (Number.isInteger(value) && isCardNumber(value.toString())) return true;
    } else if (typeof value === "object" && value !== null) {
      for (const [key, inner] of Object.entries(value)) {
        if (groupsHoldCardNumber(key) || isSensitive(key, inner)) return true;
        pending.push(inner);
      }
    }
  }
  return false;
}

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
