import { Buffer } from "node:buffer";

export const encodings = ["base64", "base64url", "hex"] as const;
/** How sealed bytes become text. */
export type Encoding = (typeof encodings)[number];

/**
 * The bytes of a text that is exactly what the encoding writes: no white space, no other alphabet, canonical padding
 * (none for base64url), no stray bits. Hexadecimal may be of either case. Undefined for any other text.
 *
 * Buffer.from skips what it does not know, so that many texts would stand for the same bytes.
 */
export function decodeStrictly(text: string, encoding: Encoding): Buffer | undefined {
  // Node reads a character beyond Latin-1 by its low byte alone: U+0141 as "A".
  if (Buffer.byteLength(text, "utf8") !== text.length) return undefined;
  const bytes = Buffer.from(text, encoding);
  if (encoding === "hex") return bytes.length * 2 === text.length ? bytes : undefined;
  return isWrittenBase64(text, bytes, encoding) ? bytes : undefined;
}

/**
 * Whether the text is the base64 that is written for the bytes read from it. A character that was skipped makes fewer
 * bytes of the same length of text; the alphabets differ in two characters; only the last group can have stray bits.
 * Measured: to write the whole text again, and compare, took a twentieth of opening an IPN.
 */
function isWrittenBase64(text: string, bytes: Buffer, encoding: "base64" | "base64url"): boolean {
  const isUrl = encoding === "base64url";
  const lengthWritten = isUrl ? Math.ceil((bytes.length * 4) / 3) : Math.ceil(bytes.length / 3) * 4;
  if (text.length !== lengthWritten) return false;
  if (isUrl ? text.includes("+") || text.includes("/") : text.includes("-") || text.includes("_")) return false;
  const groups = Math.max(0, Math.ceil(bytes.length / 3) - 1);
  return bytes.toString(encoding, groups * 3) === text.slice(groups * 4);
}
