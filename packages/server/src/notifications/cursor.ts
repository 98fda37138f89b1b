import { createHash } from "node:crypto";
import { ServiceError } from "../errors.ts";
import { idTimeMs } from "../ids.ts";
import type { DatabaseHistory, HistoryPoint } from "./store.ts";

export interface Cursor {
  readonly position: HistoryPoint;
  /** Everything created before was seen. Once history is dropped beyond this moment, something may have been missed. */
  readonly asOfMs: number;
}

export interface CursorContext {
  readonly cluster: DatabaseHistory;
  /** History is complete from this moment on. */
  readonly keptFromMs: number;
}

// version[1] systemIdentifier[8] timeline[4] asOfMs[6] xid[8] id[16] check[5]: 48 bytes, 64 characters without padding.
const version = 1;
const checkAt = 43;
const cursorBytes = 48;
const form = /^[A-Za-z0-9_-]{64}$/;

export function writeCursor(cursor: Cursor, cluster: DatabaseHistory): string {
  const bytes = Buffer.alloc(cursorBytes);
  bytes.writeUInt8(version, 0);
  bytes.writeBigUInt64BE(cluster.systemIdentifier, 1);
  bytes.writeUInt32BE(cluster.timeline, 9);
  bytes.writeUIntBE(Math.max(0, Math.trunc(cursor.asOfMs)), 13, 6);
  bytes.writeBigUInt64BE(cursor.position.xid, 19);
  bytes.write(cursor.position.id.replaceAll("-", ""), 27, "hex");
  checkOf(bytes).copy(bytes, checkAt);
  return bytes.toString("base64url");
}

/**
 * @throws ServiceError `invalid_cursor` if we did not write it, `cursor_from_another_history` if it refers to another
 * database, `cursor_expired` if history after it is no longer complete.
 */
export function readCursor(text: string, { cluster, keptFromMs }: CursorContext): Cursor {
  if (!form.test(text)) throw new ServiceError("invalid_cursor");
  const bytes = Buffer.from(text, "base64url");
  if (bytes.readUInt8(0) !== version || !checkOf(bytes).equals(bytes.subarray(checkAt))) {
    throw new ServiceError("invalid_cursor");
  }
  if (bytes.readBigUInt64BE(1) !== cluster.systemIdentifier || bytes.readUInt32BE(9) !== cluster.timeline) {
    throw new ServiceError("cursor_from_another_history");
  }
  const asOfMs = bytes.readUIntBE(13, 6);
  if (asOfMs < keptFromMs) throw new ServiceError("cursor_expired");
  return { position: { xid: bytes.readBigUInt64BE(19), id: uuidText(bytes.toString("hex", 27, checkAt)) }, asOfMs };
}

/** Detects copying mistakes only: a made-up cursor reads nothing but the caller's own notifications. */
function checkOf(bytes: Buffer): Buffer {
  return createHash("sha256")
    .update(bytes.subarray(0, checkAt))
    .digest()
    .subarray(0, cursorBytes - checkAt);
}

function uuidText(hex: string): string {
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

// Ids are created shortly before they are committed, so a later notification may be slightly older.
const commitDelayMs = 60_000;

/** The cursor after this row, whose id contains about when it was committed. */
export function positionAfter(row: HistoryPoint, keptFromMs: number): Cursor {
  // A restored notification may be older than the oldest day kept. Its position then counts as that of the oldest day.
  const asOfMs = Math.max(keptFromMs, idTimeMs(row.id) - commitDelayMs);
  return { position: { xid: row.xid, id: row.id }, asOfMs };
}
