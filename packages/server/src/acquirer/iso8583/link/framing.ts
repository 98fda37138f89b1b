import { IsoFormatError } from "../message/error.ts";

/** The header of each message on the wire. */
export interface Framing {
  /** The format of the length (bytes, BCD or ASCII digits), and their number. */
  readonly length: "binary2" | "binary4" | "bcd2" | "ascii4";
  /** The length counts itself too. */
  readonly countsItself: boolean;
  /** Five bytes in hexadecimal after the length: identifier, destination, origin. Empty: the host has none. */
  readonly tpdu: string;
}

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
   * @returns the messages that are complete now, without their headers; an empty one keeps a connection alive
   * @throws IsoFormatError when a header cannot be right: the connection is of no use then
   */
  push(bytes: Buffer): Buffer[] {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const messages: Buffer[] = [];
    for (let message = this.#next(); message !== undefined; message = this.#next()) messages.push(message);
    return messages;
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
