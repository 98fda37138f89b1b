import { Buffer } from "node:buffer";

export const encodings = ["base64", "base64url", "hex"] as const;
/** The encoding of the sealed bytes. */
export type Encoding = (typeof encodings)[number];

/**
 * Decodes a text that is exactly what an encoder writes: no white space, no other alphabet, canonical padding (none for
 * base64url), no unused bits. Hexadecimal may be in either case. Returns undefined for any other text.
 *
 * Buffer.from skips characters that it does not know, so many texts would decode to the same bytes.
 */
export function decodeStrictly(text: string, encoding: Encoding): Buffer | undefined {
  // Node reads only the low byte of a character beyond Latin-1: U+0141 as "A".
  if (Buffer.byteLength(text, "utf8") !== text.length) return undefined;
  const bytes = Buffer.from(text, encoding);
  if (encoding === "hex") return bytes.length * 2 === text.length ? bytes : undefined;
  return isWrittenBase64(text, bytes, encoding) ? bytes : undefined;
}

/**
 * Whether the text is the canonical base64 of the bytes read from it. A skipped character makes fewer bytes of the same
 * length of text; the alphabets differ in two characters; only the last group can have unused bits. Measured: encoding
 * and comparing the whole text takes a twentieth of the time of opening an IPN.
 */
function isWrittenBase64(text: string, bytes: Buffer, encoding: "base64" | "base64url"): boolean {
  const isUrl = encoding === "base64url";
  const lengthWritten = isUrl ? Math.ceil((bytes.length * 4) / 3) : Math.ceil(bytes.length / 3) * 4;
  if (text.length !== lengthWritten) return false;
  if (isUrl ? text.includes("+") || text.includes("/") : text.includes("-") || text.includes("_")) return false;
  const groups = Math.max(0, Math.ceil(bytes.length / 3) - 1);
  return bytes.toString(encoding, groups * 3) === text.slice(groups * 4);
}
