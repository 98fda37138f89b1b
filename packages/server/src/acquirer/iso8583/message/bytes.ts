import { fromEbcdic, toEbcdic } from "./ebcdic.ts";
import { IsoFormatError } from "./error.ts";

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
