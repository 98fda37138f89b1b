import { createSecretKey, type KeyObject } from "node:crypto";

/** The size of every key of the contract: AES-256, the HMAC of the IPN, the HMAC of the headers. */
export const keyBytes = 32;

/** @throws TypeError naming the expected length, never the value. */
export function secretKey(what: string, raw: Buffer): KeyObject {
  if (!(raw instanceof Uint8Array)) throw new TypeError(`${what} must be a Buffer of ${keyBytes} bytes`);
  if (raw.length !== keyBytes) throw new TypeError(`${what} must have ${keyBytes} bytes, not ${raw.length}`);
  return createSecretKey(raw);
}

/** The time in which both versions of a rotated key are valid: unless agreed otherwise, and at most. */
export const overlapHours = { initial: 24, max: 720 } as const;
