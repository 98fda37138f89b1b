import { cardSchemes, contradicts, swipeTypes } from "@paybell/contract";
import { tlvHead } from "../../ber-tlv.ts";
import type { FieldProblem } from "../../errors.ts";
import { isCardNumber } from "../../guards/card-number.ts";
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

/**
 * Chip data that must not be in the clear, and whether its value is: tracks 1 and 2 or parts of them; the card's
 * number; its holder. Ciphertext may be read as any tags: measured, of 255 bytes one in 80 has one of these, and one in
 * 10,000 with such a value.
 */
const clearTags: Readonly<Record<string, (value: string) => boolean>> = {
  "56": (value) => /^(?:[2-7][0-9A-F])+$/.test(value),
  "57": isClearTrack,
  "5A": isDigits,
  "5F20": () => true,
  "9F1F": () => true,
  "9F20": isDigits,
  "9F6B": isClearTrack,
};
const hexadecimal = /^(?:[0-9A-Fa-f]{2})+$/;
/** As a reader returns it: number, separator, expiry, and digits to the end of its last byte. */
const clearTrack = /^[0-9]{12,19}[D=][0-9]{4,}F*$/i;
/** One in 10,000 ciphertexts begins so, and one in a million with a card's number. */
const startOfTrack = /^([0-9]{12,19})[D=][0-9]{4}/i;
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

function isClearTrack(track: string): boolean {
  const [, number = ""] = startOfTrack.exec(track) ?? [];
  return isDigits(track) || clearTrack.test(track) || isCardNumber(number);
}

function isDigits(value: string): boolean {
  return /^[0-9]+F*$/i.test(value);
}

function emvProblem(emv: string): FieldProblem | undefined {
  if (!hexadecimal.test(emv)) return broken("card.emv", "invalid_value", "must be bytes in hexadecimal");
  return holdsClearTag(emv.toUpperCase())
    ? broken("card.emv", "card_number_in_clear", "must have card numbers and tracks encrypted by the POS")
    : undefined;
}

/** In BER-TLV, nested or not. Bytes that cannot be parsed, such as ciphertext, have no tags. */
function holdsClearTag(hex: string): boolean {
  for (let at = 0; at < hex.length; ) {
    const head = tlvHead(hex, at);
    if (head === undefined || head.to > hex.length) return false;
    const value = hex.slice(head.from, head.to);
    if (clearTags[head.tag]?.(value)) return true;
    const isConstructed = (Number.parseInt(head.tag.slice(0, 2), 16) & 0x20) !== 0;
    if (isConstructed && holdsClearTag(value)) return true;
    at = head.to;
  }
  return false;
}
