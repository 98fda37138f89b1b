/**
 * Data that must never be stored after a card was authorised (PCI DSS, requirement 3.3): the security code, the PIN and
 * the track. They cannot be recognised by their digits, so they are recognised by their names and the shape of the
 * value. A name is compared without case, separators and accents; the ends of its words count, so that `shippingNumber`
 * has no PIN.
 */
const code = "\\d?(?:code|value|number|num|no|data|digits)?\\d?";
const card = "(?:card|creditcard|debitcard|payment|cc)?";
const carrier = "(?:card|mag|magnetic|emv|encrypted|enc|icc|chip|raw)?";

/** The same in other languages, without accents: `codigoDeSeguridad`, `Kartensicherheitscode`, `maBaoMat`. */
const anyCard = "(?:tarjeta|cartao|cart[ae]|carte?i|(?:kredit|kreditni)?(?:kart[aeiyu]?|karten|korts?|kaart)|the)?";
const anyCode =
  "(?:co(?:digo|dice|de?|dul?)|kod(?:en?|u|i)?|koodi|код|num(?:mer|ero|ara)|cislo|szam|ziffer|zahl|ma|so)";
const anySecurity = [
  ...["seguridad", "seguranca", "sicurezza", "securite", "securitat(?:e|ii)", "keamanan", "guvenlik"],
  ...["sicherheits?", "veiligheids?", "biztonsagi"],
  ...["beveiligings?", "s[ai]k(?:ker|er)he[dt]s?", "turva", "bezpieczenstwa", "bezpecnost(?:ni|ny|i)", "bezopasnosti"],
  ...["безопасности", "bao[ _-]?mat", "security"],
].join("|");
const of = "(?:de|da|di|della?|du)?";

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
      new RegExp(`^${anyCard}${anyCode}${of}(?:${anySecurity})${of}${anyCard}$`),
      new RegExp(`^${anyCard}(?:${anySecurity})${anyCode}${anyCard}$`),
      /^(?:karten)?prue?f(?:ziffer|nummer|zahl)$/,
      // The cryptogram of a chip is longer.
      /cr[yi]ptogram/,
      /^(?:three|four|[34])digit(?:security)?code$/,
      /^(?:信用卡)?安全[码碼]$|^(?:カード)?セキュリティコード$|^(?:카드)?보안코드$/,
    ],
    // As a word among others: `my_cvc`, `cardCv2`, `cvcCode`.
    words: new RegExp(`^${card}(?:(?:cvc|cvn|cvd|cvx|ccv)${code}|c[av]v?2(?:code|value|number|num|no|data)?)$`),
    shape: /^\s*\d{3,4}\s*$/,
  },
  {
    names: [
      /^(?:card|cardholder|customer|user|atm|encrypted|enc|clear|new|old)?pin(?:block|data|number|code)?\d?$/,
      /pinbl(?:oc)?k|^epb$/,
      // The value by which a PIN is verified.
      /^(?:pvv|pinverificationvalue)$/,
      new RegExp(`^${anyCode}${of}pin$|^pinkod[eu]?$|^geheim(?:zahl|nummer)$`),
    ],
    words: undefined,
    shape: /^\s*(?:\d{4,12}|[0-9a-f]{16}|[0-9a-f]{32})\s*$/i,
  },
  {
    names: [
      new RegExp(`^${carrier}(?:stripe)?(?:stripe|track)[123]?(?:equivalent|equiv)?(?:data|info|value)?[123]?$`),
      // By the reader or the strip: `swipeData`, `msr`, `bandaMagnetica`.
      /^(?:card)?(?:swiped?|msr|mag|magnetic|magstrip)(?:card|track)?[123]?(?:data|info|value|string)$/,
      /^(?:card)?(?:swipe|msr|magstrip|magnetstreifen|ban[dt][ae]magneti(?:ca|que)|tarjamagnetica)$/,
      new RegExp(`^${carrier}(?:tr?k|pist[ae]|spur|traccia|trilha|sciezka|spoor|spor|spar)[123](?:data|value)?$`),
    ],
    words: undefined,
    shape: /\d{8,}|^\s*[%;][^\s]*\d/,
  },
] as const;

/** Cheap, and true for every text that contains one of the names. */
const somewhere = new RegExp(
  [
    ...["cv[vcndx2]", "cv[^a-z0-9]{0,3}code", "c\\.v\\.", "ccv", "cav", "csc", "cid", "pin", "pvv", "epb", "panel"],
    ...["track", "strip", "s[ei]cur", "verif", "valid", "sec[^a-z0-9]{0,3}code", "cr[yi]pto", "geheim", "pruf"],
    ...["card[^a-z0-9]{0,3}(?:code|sec|ident|auth)", "digit[^a-z0-9]{0,3}(?:code|secur)", "bao[^a-z0-9]{0,3}mat"],
    ...["segur", "sicher", "veilig", "sikkerhe", "sakerhe", "turva", "bezp", "bezop", "безоп", "biztons", "guvenl"],
    ...["pruef", "keamanan", "安全", "セキュリティ", "보안", "swipe", "msr"],
    "mag[^a-z0-9]{0,3}(?:data|info|value|string|strip|net|card)",
    "(?:tr?k|pist[ae]|spur|traccia|trilha|sciezka|spoor|spor|spar)[^a-z0-9]{0,3}[123]",
  ].join("|"),
  "i",
);
/** A name and its value in JSON that is not whole, a form, XML or `name: value`. A name is tried from its start. */
const pair = /(?<![\w.-])([\w.-]{1,200})[\\"']{0,4}\s{0,3}[:=>]\s{0,3}[\\"']{0,4}([%;]?[^\s"'&,;<>}\]\\]{1,200})/g;
/** Names that are ordinary in a URL or a text. */
const ordinary = /^(?:cid|csc|cav)$/i;
/** Only a security code is written so: `CVV 123`, `codigo de seguridad: 123`. */
const spokenName =
  "(?:cvv2?|cvc2?|cvn2?|ccv2?|cvd|cvx2?|cv2|cav2|c\\.v\\.[vc]\\.?|(?:card[ _-]?)?(?:security|verification)[ _-](?:code|value)" +
  `|${anyCode}[ _-](?:de[ _-])?(?:${anySecurity}))`;
const spokenGap = "(?:[ _-](?:code|value|number|no)\\.?)?[\\s:=#/([\"'>\u2013\u2014-]{1,5}(?:is[\\s:]{1,3})?";
const spoken = new RegExp(`(?<![a-z\\d])(?:${spokenName}${spokenGap}|cv[vc])\\d{3,4}(?!\\d)`, "i");
const endOfSentence = /[).!?:]{1,5}$/;

export function namesSensitive(text: string): boolean {
  return somewhere.test(withoutAccents(text));
}

/** Whether this key of a JSON object has a value that must never be stored. A masked or empty one is allowed. */
export function isSensitive(key: string, value: unknown): boolean {
  if (typeof value !== "string" && typeof value !== "number") return false;
  const text = String(value);
  return sensitiveShapes(key).some((shape) => shape.test(text));
}

/** The forms of the values of this key that must never be stored. */
export function sensitiveShapes(key: string): readonly RegExp[] {
  const words = wordsOf(key);
  const name = words.join("");
  return shapes
    .filter(
      ({ names, words: asWord }) => names.some((one) => one.test(name)) || words.some((word) => asWord?.test(word)),
    )
    .map(({ shape }) => shape);
}

/** Whether a text that is not one JSON value has such a name with its value. */
export function pairsSensitive(given: string): boolean {
  const text = withoutAccents(given);
  if (!somewhere.test(text)) return false;
  if (spoken.test(text)) return true;
  return [...text.matchAll(pair)].some(
    ([, key = "", value = ""]) => !ordinary.test(key) && isSensitive(key, value.replace(endOfSentence, "")),
  );
}

/** In lower case: `cardCVVCode` has card, cvv, code. */
function wordsOf(key: string): string[] {
  return withoutAccents(key)
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== "");
}

const beyondAscii = /[^\0-\x7f]/;
const accents = /[\u0300-\u036f]/g;

function withoutAccents(text: string): string {
  if (!beyondAscii.test(text)) return text;
  const plain = text.normalize("NFKD").replace(accents, "").normalize("NFC");
  return plain.replaceAll("ł", "l").replaceAll("đ", "d").replaceAll("ı", "i");
}
