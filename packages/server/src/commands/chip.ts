import type { FieldProblem } from "../errors.ts";
import type { CardRequest } from "./request.ts";
import { broken } from "./rules.ts";

/** Chip data that must not be in the clear: tracks 1 and 2 or parts of them; the card's number; its holder. */
const clearTags: ReadonlySet<string> = new Set(["56", "57", "5A", "5F20", "9F1F", "9F20", "9F6B"]);
const hexadecimal = /^(?:[0-9A-Fa-f]{2})+$/;
/** As a reader returns it: number, separator, expiry, and the rest. */
const clearTrack = /^[0-9]{12,19}[D=][0-9]{4}/i;
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
  const isClear = clearTrack.test(track2) || /^[0-9]+$/.test(track2);
  if (isClear) return broken("card.track2", "card_number_in_clear", "must be encrypted by the POS");
  return hexadecimal.test(track2) ? undefined : broken("card.track2", "invalid_value", "must be bytes in hexadecimal");
}

function emvProblem(emv: string): FieldProblem | undefined {
  if (!hexadecimal.test(emv)) return broken("card.emv", "invalid_value", "must be bytes in hexadecimal");
  const isClear = tagsOf(Buffer.from(emv, "hex")).some((tag) => clearTags.has(tag));
  return isClear
    ? broken("card.emv", "card_number_in_clear", "must have card numbers and tracks encrypted by the POS")
    : undefined;
}

/** The tags of BER-TLV, including nested ones. Bytes that cannot be parsed, such as ciphertext, have none. */
function tagsOf(bytes: Buffer): string[] {
  const tags: string[] = [];
  let at = 0;
  while (at < bytes.length) {
    const start = at;
    const isConstructed = ((bytes[at] ?? 0) & 0x20) !== 0;
    if (((bytes[at] ?? 0) & 0x1f) === 0x1f)
      do at += 1;
      while (at < bytes.length && ((bytes[at] ?? 0) & 0x80) !== 0);
    at += 1;
    const tag = bytes.subarray(start, at).toString("hex").toUpperCase();
    let length = bytes[at] ?? 0;
    at += 1;
    if (length > 0x80) {
      const lengthBytes = length - 0x80;
      if (lengthBytes > 3 || at + lengthBytes > bytes.length) break;
      length = bytes.readUIntBE(at, lengthBytes);
      at += lengthBytes;
    }
    if (at + length > bytes.length) break;
    tags.push(tag);
    if (isConstructed) tags.push(...tagsOf(bytes.subarray(at, at + length)));
    at += length;
  }
  return tags;
}
