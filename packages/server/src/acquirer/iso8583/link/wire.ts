import { type Codec, type IsoMessage, isNetworkMessage } from "../message/codec.ts";
import { IsoFormatError } from "../message/element.ts";
import type { Mac } from "../message/mac.ts";
import type { Profile } from "../profile/schema.ts";

interface WireOptions {
  readonly codec: Codec;
  readonly framing: Framing;
  /** Undefined: messages carry no MAC. */
  readonly authentication: Authentication | undefined;
}

export interface Authentication extends Pick<NonNullable<Profile["mac"]>, "field" | "covers" | "networkMessages"> {
  readonly mac: Pick<Mac, "of" | "fits">;
}

const primaryMacField = 64;
const secondaryMacField = 128;
const noMac = "0".repeat(16);

/** Messages as a connection carries them: packed, with their MAC, behind their length. */
export class Wire {
  readonly #options: WireOptions;

  constructor(options: WireOptions) {
    this.#options = options;
  }

  /** @throws IsoFormatError when a field does not fit */
  write(message: IsoMessage): Buffer {
    const { codec, framing, authentication } = this.#options;
    if (!isAuthenticated(message, authentication)) return frame(codec.pack(message), framing);
    const field = macField(message, authentication);
    const packed = codec.pack({ ...message, fields: new Map([...message.fields, [field, noMac]]) });
    const place = codec.fieldIn(packed, field, isLast(field, message));
    const mac = authentication.mac.of(covered(packed, place, authentication));
    codec.packField(field, mac).copy(place);
    return frame(packed, framing);
  }

  /** @throws IsoFormatError if it cannot be parsed, or its MAC is missing or wrong: its sender did not have the key */
  read(bytes: Buffer): IsoMessage {
    const { codec, authentication } = this.#options;
    const message = codec.unpack(bytes);
    if (!isAuthenticated(message, authentication)) return message;
    const field = macField(message, authentication);
    const mac = message.fields.get(field);
    if (mac === undefined) throw new IsoFormatError("the message has no MAC");
    const packed = authentication.covers === "zeros" ? Buffer.from(bytes) : bytes;
    const place = codec.fieldIn(packed, field, isLast(field, message));
    if (packed !== bytes) codec.packField(field, noMac).copy(place);
    if (!authentication.mac.fits(covered(packed, place, authentication), mac)) {
      throw new IsoFormatError("the message's MAC does not match");
    }
    return message;
  }
}

function macField({ fields }: IsoMessage, { field }: Authentication): number {
  if (field !== "last") return field;
  for (const number of fields.keys()) if (number > primaryMacField) return secondaryMacField;
  return primaryMacField;
}

function isLast(field: number, { fields }: IsoMessage): boolean {
  for (const number of fields.keys()) if (number > field) return false;
  return true;
}

/** @param place the MAC's bytes in `packed`: zeros, if they are covered */
function covered(packed: Buffer, place: Buffer, { covers }: Authentication): Buffer {
  if (covers === "zeros") return packed;
  const from = place.byteOffset - packed.byteOffset;
  const before = packed.subarray(0, from);
  return covers === "before" ? before : Buffer.concat([before, packed.subarray(from + place.length)]);
}

function isAuthenticated(message: IsoMessage, by: Authentication | undefined): by is Authentication {
  return by !== undefined && (by.networkMessages || !isNetworkMessage(message.mti));
}

/** The header of each message on the wire. */
export type Framing = Readonly<Profile["framing"]>;

/** No host's message is longer: every field at its longest comes to less. */
const messageBytesMax = 64 * 1_024 - 1;
const bytesOf: Readonly<Record<Framing["length"], number>> = { binary2: 2, binary4: 4, bcd2: 2, ascii4: 4 };
const digitsMax: Readonly<Record<Framing["length"], number>> = {
  binary2: 0xffff,
  binary4: messageBytesMax,
  bcd2: 9_999,
  ascii4: 9_999,
};

/** A message as it is sent. @throws IsoFormatError if it is too long for its length field */
export function frame(message: Buffer, { length, countsItself, tpdu }: Framing): Buffer {
  const header = Buffer.from(tpdu, "hex");
  const counted = header.length + message.length + (countsItself ? bytesOf[length] : 0);
  if (counted > digitsMax[length]) throw new IsoFormatError(`a message of ${counted} bytes is too long for its header`);
  return Buffer.concat([lengthHeader(counted, length), header, message]);
}

function lengthHeader(counted: number, length: Framing["length"]): Buffer {
  const bytes = bytesOf[length];
  if (length === "ascii4") return Buffer.from(counted.toString().padStart(bytes, "0"), "latin1");
  if (length === "bcd2") return Buffer.from(counted.toString().padStart(bytes * 2, "0"), "hex");
  const header = Buffer.alloc(bytes);
  header.writeUIntBE(counted, 0, bytes);
  return header;
}

/** Finds the messages in a connection's bytes, however they are split. Holds one message at most. */
export class FrameReader {
  readonly #framing: Framing;
  #held: Buffer = Buffer.alloc(0);

  constructor(framing: Framing) {
    this.#framing = framing;
  }

  /**
   * Yields the messages that are complete now, without their headers; an empty one keeps a connection alive.
   *
   * @throws IsoFormatError when a header cannot be right: the connection is of no use then
   */
  *push(bytes: Buffer): Generator<Buffer, void> {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    for (let message = this.#next(); message !== undefined; message = this.#next()) yield message;
  }

  #next(): Buffer | undefined {
    const { length, countsItself, tpdu } = this.#framing;
    const headerBytes = bytesOf[length];
    if (this.#held.length < headerBytes) return undefined;
    const counted = readLength(this.#held.subarray(0, headerBytes), length) - (countsItself ? headerBytes : 0);
    const tpduBytes = tpdu.length / 2;
    if (counted < 0 || counted > messageBytesMax || (counted > 0 && counted < tpduBytes)) {
      throw new IsoFormatError(`a message says that it has ${counted} bytes`);
    }
    if (this.#held.length < headerBytes + counted) return undefined;
    const message = this.#held.subarray(headerBytes + Math.min(tpduBytes, counted), headerBytes + counted);
    this.#held = this.#held.subarray(headerBytes + counted);
    return message;
  }
}

function readLength(header: Buffer, length: Framing["length"]): number {
  if (length === "binary2" || length === "binary4") return header.readUIntBE(0, header.length);
  const digits = header.toString(length === "bcd2" ? "hex" : "latin1");
  if (!/^[0-9]+$/.test(digits)) throw new IsoFormatError("a message's length is not a number");
  return Number(digits);
}
