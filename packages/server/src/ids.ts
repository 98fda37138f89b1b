import { hash, randomFillSync } from "node:crypto";

declare const idOf: unique symbol;
/** A UUID in its lower-case text form, branded with what it identifies so that one kind never passes for another. */
export type Id<Kind extends string> = string & { readonly [idOf]: Kind };

export type PartnerId = Id<"partner">;
export type TransactionId = Id<"transaction">;
export type NotificationId = Id<"notification">;
/** The transactions whose IPNs leave in order: a Sale and its Void, a PreAuth with its Complete and Void. */
export type ChainId = Id<"chain">;
/** A process that runs commands, or a thread that sends, while it lives: see leases/. */
export type LeaseId = Id<"lease">;
export type KeyId = Id<"key">;
export type EventId = Id<"event">;
export type EndpointId = Id<"endpoint">;

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const uuidV4Pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

export function isUuidV4(text: string): boolean {
  return uuidV4Pattern.test(text);
}

export function isUuidV7(text: string): boolean {
  return uuidPattern.test(text) && text[14] === "7";
}

/**
 * Reads an id that a caller sent; undefined when it is no UUID, so that a malformed id is the same 404 as an unknown
 * one.
 */
export function readId<Kind extends string>(text: string): Id<Kind> | undefined {
  return uuidPattern.test(text) ? (text.toLowerCase() as Id<Kind>) : undefined;
}

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
// Random bytes are drawn 512 ids at a time: one system call an id was a tenth of the whole cost of a completion.
const pool = new Uint8Array(10 * 512);
let poolOffset = pool.length;
let lastMs = 0;
let sequence = 0;

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, then 12 bits that count up within a millisecond, then 62 random bits.
 * Ids of one process rise strictly, also when its clock steps back.
 */
export function newId<Kind extends string>(nowMs: number = Date.now()): Id<Kind> {
  if (poolOffset === pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  if (nowMs > lastMs) {
    lastMs = nowMs;
    // Half of the room is left to count in: 2,048 ids a millisecond before the time part must lend itself one ahead.
    sequence = ((byteAt(poolOffset) << 8) | byteAt(poolOffset + 1)) & 0x7ff;
  } else {
    sequence += 1;
    if (sequence > 0xfff) {
      lastMs += 1;
      sequence = 0;
    }
  }
  const time = lastMs.toString(16).padStart(12, "0");
  const at = poolOffset + 2;
  poolOffset += 10;
  const version = (0x7000 | sequence).toString(16);
  const variant = hexAt((byteAt(at) & 0x3f) | 0x80) + hexAt(byteAt(at + 1));
  let node = "";
  for (let i = 2; i < 8; i += 1) node += hexAt(byteAt(at + i));
  return `${time.slice(0, 8)}-${time.slice(8)}-${version}-${variant}-${node}` as Id<Kind>;
}

function byteAt(index: number): number {
  return pool[index] ?? 0;
}

function hexAt(byte: number): string {
  return hex[byte] ?? "00";
}

/** A UUIDv8 (RFC 9562) made of `text` alone: the same for the same text, in every process. */
export function idOfText(text: string): string {
  const digits = hash("sha256", text);
  const version = `8${digits.slice(13, 16)}`;
  const variant = ((Number.parseInt(digits.slice(16, 18), 16) & 0x3f) | 0x80).toString(16) + digits.slice(18, 20);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${version}-${variant}-${digits.slice(20, 32)}`;
}

/** The moment a UUIDv7 was made, in milliseconds since 1970. */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The smallest UUIDv7 of a moment: the bound of a day's partition. */
export function lowestId(atMs: number): string {
  const time = atMs.toString(16).padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}
