import { cardSchemes, contradicts, swipeTypes } from "@paybell/contract";
import { tlvHead } from "../../ber-tlv.ts";
import type { FieldProblem } from "../../errors.ts";
import { passesLuhn } from "../../guards/card-number.ts";
import type { CardRequest } from "./request.ts";
import { broken, oneOf } from "./rules.ts";

/** An AID of five to sixteen bytes, ISO/IEC 7816-4; the first five are the scheme's. */
const aidPattern = /^[0-9A-Fa-f]{10,32}$/;
/** The chip was read, with or without contact: there is an application, so it has an ID. */
const withApplication: ReadonlySet<string> = new Set(["C", "CTL", "CL", "CLS"]);

const month = "(?:0[1-9]|1[0-2])";
const expiryPattern = new RegExp(
  `^(?:${month}\\d{2}|\\d{2}${month}|${month}/(?:\\d{2}|\\d{4})|\\d{4}-${month}|[*Xx]{2}/?[*Xx]{2})$`,
);

/** Paid from a wallet or an account by a code: no card is read. */
const withoutCard: ReadonlySet<string> = new Set(["qrmo", "qrmo_api"]);

/** Checks everything about the card except full numbers, delimiters and text, which are checked in every field. */
export function cardProblems(card: CardRequest, paymentType: string): FieldProblem[] {
  const { number = "", scheme = "", aid = "", swipeType = "", expiry = "" } = card;
  const isCard = !withoutCard.has(paymentType);
  const problems: (FieldProblem | undefined)[] = [
    number === "" && isCard ? broken("card.number", "missing_field", "is required") : undefined,
    swipeType === "" && isCard ? broken("card.swipeType", "missing_field", "is required") : undefined,
    number === "" ? undefined : maskedNumberProblem("card.number", number),
    schemeProblem(scheme, aid),
    aid === "" || aidPattern.test(aid)
      ? undefined
      : broken("card.aid", "invalid_value", "must be 10 to 32 hexadecimal digits"),
    swipeTypeProblem("card.swipeType", swipeType),
    expiry === "" || expiryPattern.test(expiry)
      ? undefined
      : broken(
          "card.expiry",
          "invalid_value",
          "must be MM/YY, MM/YYYY, YYYY-MM, MMYY or YYMM, or masked such as **/**",
        ),
  ];
  if (aid === "" && paymentType === "card" && withApplication.has(swipeType)) {
    problems.push(broken("card.aid", "aid_required", "is required for chip and contactless with paymentType card"));
  }
  return problems.filter((problem) => problem !== undefined);
}

function schemeProblem(scheme: string, aid: string): FieldProblem | undefined {
  const unknown = oneOf("card.scheme", scheme, cardSchemes);
  if (unknown !== undefined || !contradicts(aid, scheme)) return unknown;
  return broken("card.scheme", "scheme_contradicts_aid", "is not the scheme to which card.aid belongs");
}

const swipeCodes: readonly string[] = swipeTypes.map(({ code }) => code);

export function swipeTypeProblem(field: string, text: string): FieldProblem | undefined {
  return oneOf(field, text, swipeCodes);
}

const firstShownMax = 6;
/** Numbers of 16 digits and more begin with an eight-digit issuer number (ISO/IEC 7812-1:2017). */
const firstShownOfLongMax = 8;
const longNumber = 16;
const lengthMax = 19;

const maskedPattern = /^(\d{0,8})[*Xx]{3,}\d{0,4}$/;

/** card.number shows at most the first six or eight digits and the last four. Spaces and dashes may group it. */
export function maskedNumberProblem(field: string, text: string): FieldProblem | undefined {
  const number = text.replace(/[ -]/g, "");
  const first = maskedPattern.exec(number)?.[1];
  const firstMax = number.length >= longNumber ? firstShownOfLongMax : firstShownMax;
  if (first !== undefined && first.length <= firstMax && number.length <= lengthMax) return undefined;
  return broken(
    field,
    "invalid_card_number",
    "must show at most the first six (eight of 16 or more) and the last four digits, * or X between",
  );
}

/** A number that a switch truncated in its own way is sent as given, if it shows no more digits than that. */
export function shownDigitsProblem(field: string, text: string): FieldProblem | undefined {
  const shownMax = firstShownOfLongMax + 4;
  const shown = text.replace(/\D/g, "").length;
  return shown <= shownMax
    ? undefined
    : broken(field, "invalid_card_number", `must show at most ${shownMax} digits, found ${shown}`);
}

/** Chip data that must not be in the clear: tracks 1 and 2 or parts of them; the card's number; its holder. */
const clearTags: ReadonlySet<string> = new Set(["56", "57", "5A", "5F20", "9F1F", "9F20", "9F6B"]);
const holderTags: ReadonlySet<string> = new Set(["5F20", "9F1F"]);
const hexadecimal = /^(?:[0-9A-Fa-f]{2})+$/;
/** A number, or the beginning of a track, after its start sentinel or filler: each byte two digits, or one in ASCII. */
const packedDigits = /^[BF]*[0-9]{12}/i;
const asciiDigits = /^(?:3B|25)?(?:42)?(?:3[0-9]){12}/i;
/** As a reader returns it: number, separator, expiry, and the rest. */
const startOfTrack = /^([0-9]{12,19})[D=][0-9]{2}([0-9]{2})/i;
const pinBlockDigits: readonly number[] = [16, 32];

/** The fields of {@link chipProblems}: ciphertext may contain any digits, so only these rules apply to them. */
export const chipFields: ReadonlySet<string> = new Set(["card.track2", "card.pinBlock", "card.emv"]);

/** Data that the POS passes on to the acquirer is encrypted end to end: account data in the clear is refused. */
export function chipProblems({ sequenceNumber = "", track2 = "", pinBlock = "", emv = "" }: CardRequest) {
  return [
    sequenceNumber === "" || /^[0-9]{1,3}$/.test(sequenceNumber)
      ? undefined
      : broken("card.sequenceNumber", "invalid_value", "must be up to three digits"),
    track2 === "" ? undefined : trackProblem(track2),
    pinBlock === "" || (hexadecimal.test(pinBlock) && pinBlockDigits.includes(pinBlock.length))
      ? undefined
      : broken("card.pinBlock", "invalid_value", "must be 8 or 16 bytes in hexadecimal"),
    emv === "" ? undefined : emvProblem(emv),
  ];
}

function trackProblem(track2: string): FieldProblem | undefined {
  if (isClearTrack(track2)) return broken("card.track2", "card_number_in_clear", "must be encrypted by the POS");
  return hexadecimal.test(track2) ? undefined : broken("card.track2", "invalid_value", "must be bytes in hexadecimal");
}

/** Of ciphertexts one in 10,000 begins like a track, and one in 50,000 with a number that passes Luhn or a month. */
function isClearTrack(track2: string): boolean {
  if (/^[0-9]+F*$/i.test(track2) || asciiDigits.test(track2)) return true;
  const [, number, monthOfExpiry = ""] = startOfTrack.exec(track2) ?? [];
  return number !== undefined && (passesLuhn(number) || (monthOfExpiry >= "01" && monthOfExpiry <= "12"));
}

function emvProblem(emv: string): FieldProblem | undefined {
  if (!hexadecimal.test(emv)) return broken("card.emv", "invalid_value", "must be bytes in hexadecimal");
  const { fields, isWhole } = readTlv(emv.toUpperCase());
  const isClear = fields.some(({ tag, value }) => clearTags.has(tag) && (isWhole || isClearValue(tag, value)));
  return isClear
    ? broken("card.emv", "card_number_in_clear", "must have card numbers and tracks encrypted by the POS")
    : undefined;
}

/**
 * Whether a tag counts in bytes that cannot be read to their end, such as ciphertext: measured, of 255 random bytes one
 * in 80 has one of {@link clearTags}, and one in 10,000 with such a value.
 */
function isClearValue(tag: string, value: string): boolean {
  return holderTags.has(tag) || packedDigits.test(value) || asciiDigits.test(value);
}

interface TlvField {
  readonly tag: string;
  readonly value: string;
}

/** BER-TLV, with the fields of templates, and whether it could be read to its end. */
function readTlv(hex: string): { readonly fields: readonly TlvField[]; readonly isWhole: boolean } {
  const fields: TlvField[] = [];
  let isWhole = true;
  for (let at = 0; at < hex.length; ) {
    const head = tlvHead(hex, at);
    if (head === undefined || head.to > hex.length) return { fields, isWhole: false };
    const value = hex.slice(head.from, head.to);
    fields.push({ tag: head.tag, value });
    const isTemplate = (Number.parseInt(head.tag.slice(0, 2), 16) & 0x20) !== 0;
    if (isTemplate) {
      const inner = readTlv(value);
      fields.push(...inner.fields);
      isWhole &&= inner.isWhole;
    }
    at = head.to;
  }
  return { fields, isWhole };
}
