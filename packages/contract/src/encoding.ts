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
  const bytes = Buffer.from(text, encoding);
  if (encoding === "hex") return bytes.length * 2 === text.length ? bytes : undefined;
  return bytes.toString(encoding) === text ? bytes : undefined;
}
