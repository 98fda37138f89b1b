/** The content of a field, in ISO 8583's own letters. `xn` is a sign, `C` or `D`, before digits; `b` is bytes. */
export type Content = "a" | "n" | "an" | "as" | "ns" | "ans" | "z" | "b" | "xn";

/** The format of one field. */
export interface ElementFormat {
  readonly content: Content;
  /** Digits of the length prefix: 2 (LLVAR) or 3 (LLLVAR); 0 for a fixed length. */
  readonly lengthDigits: 0 | 2 | 3;
  /** In characters; in bytes for `b`; without the sign for `xn`. */
  readonly lengthMax: number;
}

const notation = /^(a|n|an|as|ns|ans|z|b|xn)(\.{2,3})?(\d{1,3})$/;
const contents: Readonly<Record<Content, { readonly pattern: RegExp; readonly holds: string }>> = {
  a: { pattern: /^[A-Za-z ]*$/, holds: "letters" },
  n: { pattern: /^[0-9]*$/, holds: "digits" },
  an: { pattern: /^[A-Za-z0-9 ]*$/, holds: "letters and digits" },
  as: { pattern: /^[ -/:-~]*$/, holds: "letters and special characters" },
  ns: { pattern: /^[ -@[-`{-~]*$/, holds: "digits and special characters" },
  ans: { pattern: /^[ -~]*$/, holds: "printable ASCII characters" },
  z: { pattern: /^[0-9=D]*$/, holds: "digits and the separator =" },
  b: { pattern: /^(?:[0-9A-F]{2})*$/, holds: "bytes in upper-case hexadecimal" },
  xn: { pattern: /^[CD][0-9]*$/, holds: "C or D and digits" },
};

/**
 * Reads ISO 8583's notation: `n6`, `an12`, `n..19` (LLVAR), `ans...999` (LLLVAR), `b8` (bytes).
 *
 * @returns undefined if `text` is not a format
 */
export function elementFormat(text: string): ElementFormat | undefined {
  const [, content, dots = "", length = "0"] = notation.exec(text) ?? [];
  const lengthMax = Number(length);
  const lengthDigits = dots.length as 0 | 2 | 3;
  const fits = lengthMax > 0 && (lengthDigits !== 2 || lengthMax < 100);
  const isSignedVariable = content === "xn" && lengthDigits > 0;
  return content === undefined || !fits || isSignedVariable
    ? undefined
    : { content: content as Content, lengthDigits, lengthMax };
}

/** Characters, padded with spaces at the end. */
export function isText(content: Content): boolean {
  return content !== "n" && content !== "z" && content !== "b" && content !== "xn";
}

/** Why a value does not fit a field's format, without repeating the value; undefined when it does. */
export function misfit(value: string, { content, lengthDigits, lengthMax }: ElementFormat): string | undefined {
  const { pattern, holds } = contents[content];
  if (!pattern.test(value)) return `must hold ${holds} only`;
  const length = lengthOf(value, content);
  if (length > lengthMax) return `may be ${lengthMax} long, and is ${length}`;
  if (lengthDigits > 0 || length === lengthMax) return undefined;
  // Text and digits are padded to a fixed length; bytes and tracks are what they are.
  return content === "n" || isText(content) ? undefined : `must be ${lengthMax} long, and is ${length}`;
}

function lengthOf(value: string, content: Content): number {
  if (content === "b") return value.length / 2;
  return content === "xn" ? value.length - 1 : value.length;
}
