import { Reader, Writer } from "./bytes.ts";
import { charsetOf, type Element, element, type IsoEncoding } from "./element.ts";
import { IsoFormatError } from "./error.ts";
import { elementFormat } from "./format.ts";

/** One message of ISO 8583. */
export interface IsoMessage {
  /** Message type indicator, four digits: `0200`. */
  readonly mti: string;
  /** Data elements by their number, 2 to 128, as text; bytes are upper-case hexadecimal. */
  readonly fields: ReadonlyMap<number, string>;
}

/** MTI x8xx: sign-on, echo, sign-off. */
export function isNetworkMessage(mti: string): boolean {
  return mti[1] === "8";
}

/** The layout of a host's messages. */
export interface MessageLayout {
  readonly encoding: IsoEncoding;
  /** Each data element that the host knows: `n6`, or with an encoding of its own. */
  readonly fields: ReadonlyMap<number, FieldLayout>;
}

export interface FieldLayout {
  readonly format: string;
  readonly encoding?: { readonly [Name in keyof IsoEncoding]?: IsoEncoding[Name] | undefined } | undefined;
}

const mtiFormat = { content: "n", lengthDigits: 0, lengthMax: 4 } as const;
/** The size of each of the two bitmaps. */
const bitmapBytes = 8;
const mtiAndBitmapsBytesMax = 4 + 2 * 2 * bitmapBytes;
const secondaryFrom = 65;
/** The first bit of the first byte: another bitmap follows. */
const secondaryBit = 0x80;
const hexadecimals = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0").toUpperCase());
const fieldMax = 128;

/** Packs and unpacks the messages of one layout. It keeps nothing of a message. */
export class Codec {
  readonly #elements: readonly (Element | undefined)[];
  readonly #mti: Element;
  readonly #bitmap: IsoEncoding["bitmap"];
  /** Used for one message after another: to allocate and clear one each time takes longer than to pack. */
  readonly #writer: Writer;

  /** @throws IsoFormatError naming the field whose format cannot be read */
  constructor({ encoding, fields }: MessageLayout) {
    this.#mti = element("the message type", mtiFormat, { ...encoding, digits: encoding.mti });
    this.#bitmap = encoding.bitmap;
    const elements: (Element | undefined)[] = Array.from({ length: fieldMax + 1 });
    for (const [number, layout] of fields) elements[number] = elementAt(number, layout, encoding);
    this.#elements = elements;
    this.#writer = new Writer(elements.reduce((sum, one) => sum + (one?.bytesMax ?? 0), mtiAndBitmapsBytesMax));
  }

  /** @throws IsoFormatError naming the field that does not fit, and never its content */
  pack({ mti, fields }: IsoMessage): Buffer {
    const numbers = [...fields.keys()].sort((one, other) => one - other);
    const into = this.#writer;
    try {
      this.#mti.write(mti, into);
      this.#writeBitmap(numbers, into);
      for (const number of numbers) this.#at(number).write(fields.get(number) ?? "", into);
      return Buffer.from(into.written());
    } finally {
      into.clear();
    }
  }

  /** @throws IsoFormatError naming the field that cannot be read, and never its content */
  unpack(bytes: Buffer): IsoMessage {
    const from = new Reader(bytes);
    const mti = this.#mti.read(from);
    const fields = new Map<number, string>();
    for (const number of this.#readBitmap(from)) fields.set(number, this.#at(number).read(from));
    if (from.left > 0) throw new IsoFormatError(`${from.left} bytes follow the last field`);
    return { mti, fields };
  }

  /**
   * The bytes of one field of fixed length in a packed message: a view.
   *
   * @param isLast no field follows it: then nothing needs to be read
   * @throws IsoFormatError as {@link unpack}
   */
  fieldIn(bytes: Buffer, number: number, isLast: boolean): Buffer {
    const size = this.#at(number).bytesMax;
    if (isLast) return bytes.subarray(-size);
    const from = new Reader(bytes);
    this.#mti.read(from);
    const numbers = this.#readBitmap(from);
    for (const before of numbers.slice(0, numbers.indexOf(number))) this.#at(before).read(from);
    return bytes.subarray(bytes.length - from.left, bytes.length - from.left + size);
  }

  /** One field alone, as it is in a message. */
  packField(number: number, value: string): Buffer {
    const into = this.#writer;
    try {
      this.#at(number).write(value, into);
      return Buffer.from(into.written());
    } finally {
      into.clear();
    }
  }

  #at(number: number): Element {
    const found = this.#elements[number];
    if (found === undefined) throw new IsoFormatError(`field ${number} is not in the profile`);
    return found;
  }

  #writeBitmap(numbers: readonly number[], into: Writer): void {
    const bytes = (numbers.at(-1) ?? 0) < secondaryFrom ? bitmapBytes : 2 * bitmapBytes;
    let next = 0;
    for (let at = 0; at < bytes; at += 1) {
      let byte = at === 0 && bytes > bitmapBytes ? secondaryBit : 0;
      for (let number = numbers[next]; number !== undefined && number <= at * 8 + 8; number = numbers[next]) {
        byte |= 0x80 >> ((number - 1) & 7);
        next += 1;
      }
      if (this.#bitmap === "binary") into.byte(byte);
      else into.text(hexadecimals[byte] ?? "", charsetOf(this.#bitmap));
    }
  }

  /** The numbers of the fields that are there. */
  #readBitmap(from: Reader): number[] {
    const numbers: number[] = [];
    let bytes = bitmapBytes;
    for (let at = 0; at < bytes; at += 1) {
      let byte =
        this.#bitmap === "binary"
          ? from.byte("the bitmap")
          : hexadecimal(from.text(2, charsetOf(this.#bitmap), "the bitmap"));
      if (at === 0 && (byte & secondaryBit) !== 0) bytes = 2 * bitmapBytes;
      if (at === 0) byte &= ~secondaryBit;
      for (let bit = 0; bit < 8; bit += 1) if ((byte & (0x80 >> bit)) !== 0) numbers.push(at * 8 + bit + 1);
    }
    return numbers;
  }
}

function hexadecimal(text: string): number {
  if (!/^[0-9A-Fa-f]{2}$/.test(text)) throw new IsoFormatError("the bitmap must be hexadecimal");
  return Number.parseInt(text, 16);
}

function elementAt(number: number, { format, encoding: own }: FieldLayout, encoding: IsoEncoding): Element {
  const read = elementFormat(format);
  if (!Number.isInteger(number) || number < 2 || number > fieldMax) {
    throw new IsoFormatError(`there is no field ${number}: fields are numbered from 2 to ${fieldMax}`);
  }
  if (read === undefined) throw new IsoFormatError(`field ${number} has no readable format, such as n6 or ans...999`);
  return element(`field ${number}`, read, { ...encoding, ...(own as Partial<IsoEncoding>) });
}
