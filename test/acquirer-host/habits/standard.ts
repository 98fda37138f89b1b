import { createCipheriv } from "node:crypto";

/** ISO 8583:1987 as this host reads the standard: ASCII, with a bitmap in hexadecimal. It shares no code with ours. */
export interface Message {
  mti: string;
  readonly fields: Map<number, string>;
}

const fixed: Readonly<Record<number, number>> = {
  ...{ 3: 6, 4: 12, 7: 10, 11: 6, 12: 6, 13: 4, 15: 4, 22: 3, 24: 3, 25: 2 },
  ...{ 37: 12, 38: 6, 39: 2, 41: 8, 42: 15, 49: 3, 64: 16, 70: 3, 90: 42, 128: 16 },
};
/** Fields with a length of so many digits before them. */
const variable: Readonly<Record<number, number>> = { 44: 2, 48: 3, 54: 3, 60: 3, 61: 3, 62: 3, 63: 3 };
const text: ReadonlySet<number> = new Set([37, 38, 39, 41, 42]);

const noMac = "0".repeat(16);

/** @param macKey its MAC is in the last field, of all before it; undefined: it has none */
export function pack(message: Message, macKey?: Buffer): Buffer {
  if (macKey === undefined) return framed(packed(message));
  const field = [...message.fields.keys()].some((number) => number > 64) ? 128 : 64;
  const body = packed({ ...message, fields: new Map([...message.fields, [field, noMac]]) });
  const covered = body.subarray(0, -noMac.length);
  return framed(Buffer.concat([covered, Buffer.from(macOf(covered, macKey), "latin1")]));
}

/** Whether the last field of a message is its MAC under this key. */
export function hasMac(body: Buffer, key: Buffer): boolean {
  return body.subarray(-noMac.length).toString("latin1") === macOf(body.subarray(0, -noMac.length), key);
}

/** ANSI X9.19, block by block: DES with the first half of the key, and at the end with the second and the first. */
function macOf(bytes: Buffer, key: Buffer): string {
  const [first, second] = [key.subarray(0, 8), key.subarray(8)];
  const des = (one: Buffer, other: Buffer, block: Buffer) => {
    const cipher = createCipheriv("des-ede3", Buffer.concat([one, other, one]), null).setAutoPadding(false);
    return cipher.update(block);
  };
  let chained = Buffer.alloc(8);
  for (let at = 0; at < bytes.length; at += 8) {
    const mixed = Buffer.from(chained.map((byte, nth) => byte ^ (bytes[at + nth] ?? 0)));
    const isLast = at + 8 >= bytes.length;
    chained = Buffer.from(des(first, isLast ? second : first, mixed));
  }
  return chained.toString("hex").toUpperCase();
}

function packed({ mti, fields }: Message): Buffer {
  const present = [...fields.keys()].sort((one, other) => one - other);
  const hasSecondary = present.some((field) => field > 64);
  const bits = new Uint8Array(hasSecondary ? 16 : 8);
  for (const field of hasSecondary ? [1, ...present] : present) {
    bits[(field - 1) >> 3] = (bits[(field - 1) >> 3] ?? 0) | (0x80 >> ((field - 1) & 7));
  }
  const bodies = present.map((field) => written(field, fields.get(field) ?? ""));
  return Buffer.from(mti + Buffer.from(bits).toString("hex").toUpperCase() + bodies.join(""), "latin1");
}

/** Two bytes of length, then the message. */
export function framed(body: Buffer): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(body.length);
  return Buffer.concat([length, body]);
}

export function unpack(body: Buffer): Message {
  const all = body.toString("latin1");
  const bitmapBytes = Number.parseInt(all.slice(4, 6), 16) & 0x80 ? 16 : 8;
  const bits = Buffer.from(all.slice(4, 4 + 2 * bitmapBytes), "hex");
  const fields = new Map<number, string>();
  let at = 4 + 2 * bitmapBytes;
  for (let field = 2; field <= bitmapBytes * 8; field += 1) {
    if (((bits[(field - 1) >> 3] ?? 0) & (0x80 >> ((field - 1) & 7))) === 0) continue;
    const digits = variable[field] ?? 0;
    const length = digits === 0 ? fixed[field] : Number(all.slice(at, at + digits));
    if (length === undefined) throw new Error(`the standard's host does not know field ${field}`);
    fields.set(field, all.slice(at + digits, at + digits + length));
    at += digits + length;
  }
  if (at !== all.length) throw new Error(`the message has ${all.length - at} bytes too many`);
  return { mti: all.slice(0, 4), fields };
}

/** Splits what arrives into messages. */
export class Frames {
  #rest = Buffer.alloc(0);

  *push(bytes: Buffer): Generator<Buffer> {
    this.#rest = Buffer.concat([this.#rest, bytes]);
    while (this.#rest.length >= 2 && this.#rest.length >= 2 + this.#rest.readUInt16BE()) {
      const end = 2 + this.#rest.readUInt16BE();
      yield this.#rest.subarray(2, end);
      this.#rest = this.#rest.subarray(end);
    }
  }
}

function written(field: number, value: string): string {
  const digits = variable[field] ?? 0;
  if (digits > 0) return value.length.toString().padStart(digits, "0") + value;
  const length = fixed[field] ?? 0;
  return text.has(field) ? value.padEnd(length) : value.padStart(length, "0");
}
