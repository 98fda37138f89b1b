/**
 * A message that cannot be packed or unpacked. Its text names the field and what is wrong with it, never the field's
 * content: that may be a card number.
 */
export class IsoFormatError extends Error {
  override readonly name = "IsoFormatError";
}

/** The content of a field, in ISO 8583's own letters. `xn` is a sign, `C` or `D`, before digits; `b` is bytes. */
export type Content = "a" | "n" | "an" | "as" | "ns" | "ans" | "z" | "b" | "xn";

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
function isText(content: Content): boolean {
  return content !== "n" && content !== "z" && content !== "b" && content !== "xn";
}

/** Why a value does not fit a field's format, without repeating the value; undefined when it does. */
function misfit(value: string, { content, lengthDigits, lengthMax }: ElementFormat): string | undefined {
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

/** Two characters for each byte, in ASCII or EBCDIC. */
export type Hexadecimal = "hex" | "hex-ebcdic";

export function charsetOf(hexadecimal: Hexadecimal): Charset {
  return hexadecimal === "hex" ? "ascii" : "ebcdic";
}

/** A host's encoding of the parts that ISO 8583 leaves open. */
export interface IsoEncoding {
  readonly mti: Charset | "bcd";
  readonly bitmap: "binary" | Hexadecimal;
  /** The lengths before fields of variable length. */
  readonly lengths: Charset | "bcd" | "binary";
  /** Fields of characters, and the sign of xn. */
  readonly text: Charset;
  /** Fields of digits (n, xn). */
  readonly digits: Charset | "bcd";
  /** Tracks (z). */
  readonly tracks: Charset | "bcd";
  /** Fields of bytes (b). */
  readonly bytes: "binary" | Hexadecimal;
  /** The half byte that stays empty where an odd number of digits is written as BCD. */
  readonly oddDigits: { readonly fixed: "left" | "right"; readonly variable: "left" | "right" };
}

/** Writes and reads one field. */
export interface Element {
  /** The most bytes it takes, its length included. */
  readonly bytesMax: number;
  write(value: string, into: Writer): void;
  read(from: Reader): string;
}

/** @param name as errors call it: `field 4` */
export function element(name: string, format: ElementFormat, encoding: IsoEncoding): Element {
  const { content, lengthDigits, lengthMax } = format;
  const body = bodyOf(name, format, encoding);
  const check = (value: string) => {
    const problem = misfit(value, format);
    if (problem !== undefined) throw new IsoFormatError(`${name} ${problem}`);
    return value;
  };
  // A host's text is accepted unchanged: an unusual character in a merchant's name must not lose an approval.
  const checkRead = isText(content) ? (value: string) => value : check;
  if (lengthDigits === 0) {
    return {
      bytesMax: body.bytes(lengthMax),
      write: (value, into) => body.write(padded(check(value), format), into),
      read: (from) => checkRead(body.read(lengthMax, from)),
    };
  }
  const length = lengthElement(`the length of ${name}`, lengthDigits, encoding.lengths);
  return {
    bytesMax: length.bytesMax + body.bytes(lengthMax),
    write(value, into) {
      check(value);
      length.write(content === "b" ? value.length / 2 : value.length, into);
      body.write(value, into);
    },
    read(from) {
      const found = length.read(from);
      if (found > lengthMax) throw new IsoFormatError(`${name} may be ${lengthMax} long, and says it is ${found}`);
      return checkRead(body.read(found, from));
    },
  };
}

interface Body {
  bytes(length: number): number;
  write(value: string, into: Writer): void;
  read(length: number, from: Reader): string;
}

function bodyOf(name: string, { content, lengthDigits }: ElementFormat, encoding: IsoEncoding): Body {
  const oddDigits = lengthDigits === 0 ? encoding.oddDigits.fixed : encoding.oddDigits.variable;
  const bcd: Body = {
    bytes: (length) => Math.ceil(length / 2),
    write: (value, into) => into.bcd(value, oddDigits),
    read: (length, from) => from.bcd(length, oddDigits, name),
  };
  const { bytes, tracks, digits } = encoding;
  if (content === "b") return bytes === "binary" ? binary(name) : hexadecimal(name, charsetOf(bytes));
  if (content === "z") return tracks === "bcd" ? bcd : text(name, tracks);
  if (content === "n") return digits === "bcd" ? bcd : text(name, digits);
  if (content === "xn") return signed(name, encoding.text, digits === "bcd" ? bcd : text(name, digits));
  return text(name, encoding.text);
}

function text(name: string, charset: Charset): Body {
  return {
    bytes: (length) => length,
    write: (value, into) => into.text(value, charset),
    read: (length, from) => from.text(length, charset, name),
  };
}

function binary(name: string): Body {
  return {
    bytes: (length) => length,
    write: (value, into) => into.hex(value),
    read: (length, from) => from.hex(length, name),
  };
}

/** Each byte as two characters. */
function hexadecimal(name: string, charset: Charset): Body {
  return {
    bytes: (length) => length * 2,
    write: (value, into) => into.text(value, charset),
    read: (length, from) => from.text(length * 2, charset, name).toUpperCase(),
  };
}

function signed(name: string, charset: Charset, digits: Body): Body {
  return {
    bytes: (length) => 1 + digits.bytes(length),
    write(value, into) {
      into.text(value.slice(0, 1), charset);
      digits.write(value.slice(1), into);
    },
    read: (length, from) => from.text(1, charset, name) + digits.read(length, from),
  };
}

function padded(value: string, { content, lengthMax }: ElementFormat): string {
  if (content === "n") return value.padStart(lengthMax, "0");
  return isText(content) ? value.padEnd(lengthMax, " ") : value;
}

function lengthElement(name: string, digits: 2 | 3, encoding: IsoEncoding["lengths"]) {
  if (encoding === "ascii" || encoding === "ebcdic") {
    return {
      bytesMax: digits,
      write: (length: number, into: Writer) => into.text(length.toString().padStart(digits, "0"), encoding),
      read: (from: Reader) => numberIn(from.text(digits, encoding, name), name),
    };
  }
  const bytes = Math.ceil(digits / 2);
  if (encoding === "bcd") {
    return {
      bytesMax: bytes,
      write: (length: number, into: Writer) => into.bcd(length.toString().padStart(bytes * 2, "0"), "left"),
      read: (from: Reader) => numberIn(from.bcd(bytes * 2, "left", name), name),
    };
  }
  return {
    bytesMax: bytes,
    write(length: number, into: Writer) {
      for (let at = bytes - 1; at >= 0; at -= 1) into.byte((length >> (8 * at)) & 0xff);
    },
    read(from: Reader) {
      let length = 0;
      for (let at = 0; at < bytes; at += 1) length = length * 256 + from.byte(name);
      return length;
    },
  };
}

function numberIn(digits: string, name: string): number {
  if (!/^\d+$/.test(digits)) throw new IsoFormatError(`${name} must be digits`);
  return Number(digits);
}

/** The bytes of characters. */
export type Charset = "ascii" | "ebcdic";

/** The bytes of a message as they are written, from the first on. */
export class Writer {
  readonly #buffer: Buffer;
  #at = 0;

  constructor(bytesMax: number) {
    this.#buffer = Buffer.alloc(bytesMax);
  }

  /** A view: it changes with the next message. */
  written(): Buffer {
    return this.#buffer.subarray(0, this.#at);
  }

  /** Starts again, and leaves none of the written bytes in memory. */
  clear(): void {
    this.#buffer.fill(0, 0, this.#at);
    this.#at = 0;
  }

  text(text: string, charset: Charset): void {
    if (charset === "ascii") this.#at += this.#buffer.write(text, this.#at, "latin1");
    else this.#at += toEbcdic(text).copy(this.#buffer, this.#at);
  }

  hex(text: string): void {
    this.#at += this.#buffer.write(text, this.#at, "hex");
  }

  /** Two digits a byte, and `=` or `D` as the nibble D; of an odd number the half that `oddDigits` names is zero. */
  bcd(digits: string, oddDigits: "left" | "right"): void {
    const isOdd = digits.length % 2 === 1;
    let at = 0;
    if (isOdd && oddDigits === "left") {
      this.byte(nibble(digits, 0));
      at = 1;
    }
    for (; at < digits.length; at += 2) this.byte((nibble(digits, at) << 4) | nibble(digits, at + 1));
  }

  byte(value: number): void {
    this.#buffer[this.#at] = value;
    this.#at += 1;
  }
}

/** The bytes of a message as they are read. Each step names the field that it reads, for the error. */
export class Reader {
  readonly #bytes: Buffer;
  /** All of it, a character a byte: measured, one conversion takes less than those of a few fields. */
  readonly #text: string;
  #ebcdic: string | undefined;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#text = bytes.toString("latin1");
  }

  get left(): number {
    return this.#bytes.length - this.#at;
  }

  text(length: number, charset: Charset, field: string): string {
    const from = this.#skip(length, field);
    if (charset === "ascii") return this.#text.slice(from, from + length);
    this.#ebcdic ??= fromEbcdic(this.#bytes);
    return this.#ebcdic.slice(from, from + length);
  }

  hex(bytes: number, field: string): string {
    const from = this.#skip(bytes, field);
    return this.#bytes.toString("hex", from, from + bytes).toUpperCase();
  }

  bcd(digits: number, oddDigits: "left" | "right", field: string): string {
    const bytes = Math.ceil(digits / 2);
    const from = this.#skip(bytes, field);
    let text = "";
    for (let at = from; at < from + bytes; at += 1) text += pairs[this.#bytes[at] ?? 0];
    if (text.length === digits) return text;
    return oddDigits === "left" ? text.slice(1) : text.slice(0, -1);
  }

  byte(field: string): number {
    return this.#bytes[this.#skip(1, field)] ?? 0;
  }

  #skip(bytes: number, field: string): number {
    if (bytes > this.left) throw new IsoFormatError(`The message ends in ${field}`);
    const from = this.#at;
    this.#at += bytes;
    return from;
  }
}

/** A BCD byte as two digits. A nibble that is not a digit becomes a letter, which the field's format refuses. */
const pairs: readonly string[] = Array.from({ length: 256 }, (_, byte) =>
  byte.toString(16).padStart(2, "0").toUpperCase().replaceAll("D", "="),
);

const zero = 0x30;
const separator = 0xd;

function nibble(digits: string, at: number): number {
  const code = digits.charCodeAt(at);
  // Past the end there is no character, and the half byte is zero.
  if (Number.isNaN(code)) return 0;
  return code >= zero && code <= zero + 9 ? code - zero : separator;
}

/** IBM's code page 1047: for each byte its character of ISO 8859-1. */
const characters = Buffer.from(
  "000102039c09867f978d8e0b0c0d0e0f101112139d8508871819928f1c1d1e1f80818283840a171b88898a8b8c050607" +
    "909116939495960498999a9b14159e1a20a0e2e4e0e1e3e5e7f1a22e3c282b7c26e9eaebe8edeeefecdf21242a293b5e" +
    "2d2fc2c4c0c1c3c5c7d1a62c255f3e3ff8c9cacbc8cdcecfcc603a2340273d22d8616263646566676869abbbf0fdfeb1" +
    "b06a6b6c6d6e6f707172aabae6b8c6a4b57e737475767778797aa1bfd05bdeaeaca3a5b7a9a7b6bcbdbedda8af5db4d7" +
    "7b414243444546474849adf4f6f2f3f57d4a4b4c4d4e4f505152b9fbfcf9faff5cf7535455565758595ab2d4d6d2d3d5" +
    "30313233343536373839b3dbdcd9da9f",
  "hex",
);
const bytes = Buffer.alloc(256);
for (const [byte, character] of characters.entries()) bytes[character] = byte;

/** @param latin1 bytes, a character each */
export function fromEbcdic(latin1: Buffer): string {
  return translated(latin1, characters).toString("latin1");
}

/** A character that the code page lacks becomes the one of its lower byte: formats refuse such before. */
export function toEbcdic(text: string): Buffer {
  return translated(Buffer.from(text, "latin1"), bytes);
}

function translated(from: Buffer, table: Buffer): Buffer {
  const to = Buffer.allocUnsafe(from.length);
  for (let at = 0; at < from.length; at += 1) to[at] = table[from[at] ?? 0] ?? 0;
  return to;
}
