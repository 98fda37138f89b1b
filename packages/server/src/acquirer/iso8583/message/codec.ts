import {
  charsetOf,
  type Element,
  element,
  elementFormat,
  type IsoEncoding,
  IsoFormatError,
  Reader,
  Writer,
} from "./element.ts";

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

const text999 = "ans...999";

/** ISO 8583:1987. Field 1 is the secondary bitmap, which the message itself decides. */
const fields1987: ReadonlyMap<number, string> = new Map([
  ...numbered(2, ["n..19", "n6", "n12", "n12", "n12", "n10", "n8", "n8", "n8"]),
  ...numbered(11, ["n6", "n6", "n4", "n4", "n4", "n4", "n4", "n4", "n3", "n3"]),
  ...numbered(21, ["n3", "n3", "n3", "n3", "n2", "n2", "n1", "xn8", "xn8", "xn8"]),
  ...numbered(31, ["xn8", "n..11", "n..11", "ns..28", "z..37", "z...104", "an12", "an6", "an2", "an3"]),
  ...numbered(41, ["ans8", "ans15", "ans40", "an..25", "an..76", text999, text999, text999, "an3", "an3"]),
  ...numbered(51, ["an3", "b8", "n16", "an...120", text999, text999, text999, text999, text999, text999]),
  ...numbered(61, [text999, text999, text999, "b8", "b1", "n1", "n2", "n3", "n3", "n3"]),
  ...numbered(71, ["n4", "n4", "n6", "n10", "n10", "n10", "n10", "n10", "n10", "n10"]),
  ...numbered(81, ["n10", "n12", "n12", "n12", "n12", "n16", "n16", "n16", "n16", "n42"]),
  ...numbered(91, ["an1", "an2", "an6", "an7", "an42", "b16", "xn16", "ans25", "n..11", "n..11"]),
  ...numbered(101, ["ans..17", "ans..28", "ans..28", "ans...100", text999, text999, text999, text999, text999]),
  ...numbered(110, [text999, text999, text999, text999, text999, text999, text999, text999, text999, text999]),
  ...numbered(120, [text999, text999, text999, text999, text999, text999, text999, text999, "b8"]),
]);

/** ISO 8583:1993, likewise. */
const fields1993: ReadonlyMap<number, string> = new Map([
  ...numbered(2, ["n..19", "n6", "n12", "n12", "n12", "n10", "n8", "n8", "n8"]),
  ...numbered(11, ["n6", "n12", "n4", "n4", "n6", "n4", "n4", "n4", "n3", "n3"]),
  ...numbered(21, ["n3", "an12", "n3", "n3", "n4", "n4", "n1", "n6", "n3", "n24"]),
  ...numbered(31, ["ans..99", "n..11", "n..11", "ns..28", "z..37", "z...104", "an12", "an6", "n3", "n3"]),
  ...numbered(41, ["ans8", "ans15", "ans..99", "ans..99", "ans..76", "ans...204", text999, text999, "an3", "an3"]),
  ...numbered(51, ["an3", "b8", "b..48", "ans...120", "b...255", "n..35", "n3", "n..11", text999, text999]),
  ...numbered(61, [text999, text999, text999, "b8", "b8", "ans...204", "n2", "n3", "n3", "n3"]),
  ...numbered(71, ["n8", text999, "n6", "n10", "n10", "n10", "n10", "n10", "n10", "n10"]),
  ...numbered(81, ["n10", "n10", "n10", "n10", "n10", "n16", "n16", "n16", "n16", "n10"]),
  ...numbered(91, ["n3", "n3", "n..11", "n..11", "ans..99", "b...999", "xn16", "ans25", "an..11", "n..11"]),
  ...numbered(101, ["ans..17", "ans..28", "ans..28", "ans...100", "n16", "n16", "n10", "n10", "ans..84", "ans..84"]),
  ...numbered(111, [text999, text999, text999, text999, text999, text999, text999, text999, text999, text999]),
  ...numbered(121, [text999, text999, text999, text999, text999, text999, text999, "b8"]),
]);

/** The format of each data element by the version of the standard. A profile says where its host differs. */
export const standardFields = { "1987": fields1987, "1993": fields1993 } as const;

function numbered(first: number, formats: readonly string[]): [number, string][] {
  return formats.map((format, at) => [first + at, format]);
}
