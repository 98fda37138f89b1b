import type { Charset, Reader, Writer } from "./bytes.ts";
import { IsoFormatError } from "./error.ts";
import { type ElementFormat, isText, misfit } from "./format.ts";

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
