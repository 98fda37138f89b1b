import { hash, randomFillSync } from "node:crypto";

declare const idOf: unique symbol;
/** A UUID in lower case, branded with what it identifies, so that ids of different kinds cannot be confused. */
export type Id<Kind extends string> = string & { readonly [idOf]: Kind };

export type PartnerId = Id<"partner">;
export type TransactionId = Id<"transaction">;
export type NotificationId = Id<"notification">;
/** Transactions whose IPNs are delivered in order: a Sale and its Void, a PreAuth with its Complete and Void. */
export type ChainId = Id<"chain">;
/** A living process: see leases/. */
export type LeaseId = Id<"lease">;
export type KeyId = Id<"key">;
export type EventId = Id<"event">;
export type ProposalId = Id<"proposal">;
/** A redelivery of many notifications. */
export type RedeliveryId = Id<"redelivery">;
export type EndpointId = Id<"endpoint">;

/** A chain has the id of its first transaction. @param original of the transaction; undefined: it is the first */
export function chainOf(id: TransactionId, original: { readonly chainId: ChainId } | undefined): ChainId {
  return original?.chainId ?? (id as string as ChainId);
}

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const uuidV4Pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/i;

/** Sorts before every other id. */
export const nilId = "00000000-0000-0000-0000-000000000000";
/** Sorts behind every other id. */
export const highestId = "ffffffff-ffff-ffff-ffff-ffffffffffff";

export function isUuid(text: string): boolean {
  return uuidPattern.test(text);
}

export function isUuidV4(text: string): boolean {
  return uuidV4Pattern.test(text);
}

export function isUuidV7(text: string): boolean {
  return uuidPattern.test(text) && text[14] === "7";
}

/** Reads a caller's id; undefined if it is not a UUID, so that a malformed id is the same 404 as an unknown one. */
export function readId<Kind extends string>(text: string): Id<Kind> | undefined {
  return uuidPattern.test(text) ? (text.toLowerCase() as Id<Kind>) : undefined;
}

const hex = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));
// Random bytes are drawn for 512 ids at a time: one system call per id was a tenth of the cost of a completion.
const pool = new Uint8Array(10 * 512);
let poolOffset = pool.length;
let lastMs = 0;
let sequence = 0;

/**
 * A UUIDv7 (RFC 9562): 48 bits of milliseconds, then a 12-bit counter within a millisecond, then 62 random bits. Ids of
 * one process increase strictly, also when its clock goes back.
 */
export function newId<Kind extends string>(nowMs: number = Date.now()): Id<Kind> {
  if (poolOffset === pool.length) {
    randomFillSync(pool);
    poolOffset = 0;
  }
  if (nowMs > lastMs) {
    lastMs = nowMs;
    // Half of the range is left for counting: 2,048 ids per millisecond before the time part must advance.
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

/** Forgets the time of the last id: a test with a clock of its own may have left it in the future. */
export function forgetLastId(): void {
  lastMs = 0;
}

function byteAt(index: number): number {
  return pool[index] ?? 0;
}

function hexAt(byte: number): string {
  return hex[byte] ?? "00";
}

/** A UUIDv8 (RFC 9562) derived from `text`: the same for the same text, in every process. */
export function idOfText(text: string): string {
  const digits = hash("sha256", text);
  const version = `8${digits.slice(13, 16)}`;
  const variant = ((Number.parseInt(digits.slice(16, 18), 16) & 0x3f) | 0x80).toString(16) + digits.slice(18, 20);
  return `${digits.slice(0, 8)}-${digits.slice(8, 12)}-${version}-${variant}-${digits.slice(20, 32)}`;
}

/** An id of this time, the same for the same text in every process: what has it is stored once. */
export function idAt<Kind extends string>(atMs: number, text: string): Id<Kind> {
  return (lowestId(Math.floor(atMs)).slice(0, 14) + idOfText(text).slice(14)) as Id<Kind>;
}

/** The creation time of a UUIDv7, in milliseconds since 1970. */
export function idTimeMs(id: string): number {
  return Number.parseInt(id.slice(0, 8) + id.slice(9, 13), 16);
}

/** The smallest UUIDv7 of a time: the bound of a day's partition. An id has no time before 1970, nor one of over 48 bits. */
export function lowestId(atMs: number): string {
  const time = Math.min(Math.max(0, atMs), 2 ** 48 - 1)
    .toString(16)
    .padStart(12, "0");
  return `${time.slice(0, 8)}-${time.slice(8)}-0000-0000-000000000000`;
}

/** Partners fall into this many shards, by the last byte of their id, which is random in a UUIDv7. */
export const shardCount = 256;

/** The home of a shard, from 0. Consecutive shards share a home. @param homes their number, which divides the shards */
export function homeOf(shard: number, homes: number): number {
  return Math.floor((shard * homes) / shardCount);
}

/** The shard of a partner: 0 to 255. The column `shard` contains the same. */
export function shardOf(partnerId: PartnerId): number {
  return Number.parseInt(partnerId.slice(-2), 16);
}
