/**
 * Data that must never be stored after a card was authorised (PCI DSS, requirement 3.3): the security code, the PIN and
 * the track. They cannot be recognised by their digits, so they are recognised by their names and the shape of the
 * value. A name is compared without case and separators; the ends of its words count, so that `shippingNumber` has no
 * PIN.
 */
const code = "\\d?(?:code|value|number|num|no|data|digits)?\\d?";
const card = "(?:card|creditcard|debitcard|payment|cc)?";
const carrier = "(?:card|mag|magnetic|emv|encrypted|enc|icc|chip|raw)?";
const shapes = [
  {
    names: [
      // No other word contains it.
      /cvv/,
      new RegExp(`^${card}(?:csc|cid|cav)${code}$`),
      new RegExp(`^${card}(?:security|verification|validation)(?:code|value|number|digits)\\d?$`),
      /^cardcode\d?(?:value)?$/,
      /^(?:card)?cvcode\d?$/,
      new RegExp(`^card(?:identification|authentication)${code}$`),
      /^signaturepanelcode$/,
      new RegExp(`^${card}seccode\\d?$|^card(?:verification|sec)$`),
    ],
    // As a word among others: `my_cvc`, `cardCv2`, `cvcCode`.
    words: new RegExp(`^${card}(?:(?:cvc|cvn|cvd|ccv)${code}|c[av]v?2(?:code|value|number|num|no|data)?)$`),
    shape: /^\s*\d{3,4}\s*$/,
  },
  {
    names: [
      /^(?:card|cardholder|customer|user|atm|encrypted|enc|clear|new|old)?pin(?:block|data|number|code)?\d?$/,
      /pinbl(?:oc)?k/,
      // The value by which a PIN is verified.
      /^(?:pvv|pinverificationvalue)$/,
    ],
    words: undefined,
    shape: /^\s*(?:\d{4,12}|[0-9a-f]{16}|[0-9a-f]{32})\s*$/i,
  },
  {
    names: [new RegExp(`^${carrier}(?:stripe)?(?:stripe|track)[123]?(?:equivalent|equiv)?(?:data|info|value)?[123]?$`)],
    words: undefined,
    shape: /\d{8,}|^\s*[%;][^\s]*\d/,
  },
] as const;

/** Cheap, and true for every text that contains one of the names. */
const somewhere =
  /cv[vcnd2]|cv[^a-z0-9]{0,3}code|ccv|cav|csc|cid|pin|pvv|track|stripe|secur|verif|valid|sec[^a-z0-9]{0,3}code|card[^a-z0-9]{0,3}(?:code|sec|ident|auth)|panel/i;
/** A name and its value in JSON that is not whole, a form, XML or `name: value`. A name is tried from its start. */
const pair = /(?<![\w.-])([\w.-]{1,200})[\\"']{0,4}\s{0,3}[:=>]\s{0,3}[\\"']{0,4}([%;]?[^\s"'&,;<>}\]\\]{1,200})/g;
/** Names that are ordinary in a URL or a text. */
const ordinary = /^(?:cid|csc|cav)$/i;
/** Only a security code is written so: `CVV 123`. */
const spokenName =
  "(?:cvv2?|cvc2?|cvn2?|ccv2?|cvd|cv2|cav2|(?:card[ _-]?)?(?:security|verification)[ _-](?:code|value))";
const spokenGap = "(?:[ _-](?:code|value|number|no)\\.?)?[\\s:=#/([\"'>\u2013\u2014-]{1,5}(?:is[\\s:]{1,3})?";
const spoken = new RegExp(`(?<![a-z\\d])${spokenName}${spokenGap}\\d{3,4}(?!\\d)`, "i");
const endOfSentence = /[).!?:]{1,5}$/;

/** Whether a text may contain such a name. */
export function namesSensitive(text: string): boolean {
  return somewhere.test(text);
}

/** Whether this key of a JSON object has a value that must never be stored. A masked or empty one is allowed. */
export function isSensitive(key: string, value: unknown): boolean {
  if (typeof value !== "string" && typeof value !== "number") return false;
  const text = String(value);
  const words = wordsOf(key);
  const name = words.join("");
  return shapes.some(
    ({ names, words: asWord, shape }) =>
      shape.test(text) && (names.some((one) => one.test(name)) || words.some((word) => asWord?.test(word) ?? false)),
  );
}

/** Whether a text that is not one JSON value has such a name with its value. */
export function pairsSensitive(text: string): boolean {
  if (!namesSensitive(text)) return false;
  if (spoken.test(text)) return true;
  return [...text.matchAll(pair)].some(
    ([, key = "", value = ""]) => !ordinary.test(key) && isSensitive(key, value.replace(endOfSentence, "")),
  );
}

/** In lower case: `cardCVVCode` has card, cvv, code. */
function wordsOf(key: string): string[] {
  return key
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z\d]+/)
    .filter((word) => word !== "");
}
