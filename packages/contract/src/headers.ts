import { createHmac, type Hmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { decodeStrictly } from "./encoding.ts";
import { keyBytes, secretKey } from "./keys.ts";

/** The headers of a notification beyond those of section 4.1. The first three are Standard Webhooks v1. */
export const headerNames = {
  id: "webhook-id",
  timestamp: "webhook-timestamp",
  signature: "webhook-signature",
  attempt: "paybell-attempt",
  contract: "paybell-contract",
  key: "paybell-key",
  command: "paybell-command",
  originalTransaction: "paybell-original-transaction",
  outOfOrder: "paybell-out-of-order",
} as const;
export type HeaderName = (typeof headerNames)[keyof typeof headerNames];

/** The versions of the notification contract that can be sent, the newest last. */
export const contractVersions = ["1"] as const;
export type ContractVersion = (typeof contractVersions)[number];

/** The value of paybell-contract unless another version was agreed on. */
export const contractVersion: ContractVersion = "1";

const secretPrefix = "whsec_";

/**
 * Returns the key for the headers' signature. `secret` is `whsec_` and the base64 of 32 bytes.
 *
 * @throws TypeError naming the expected shape, never the value.
 */
export function webhookKey(secret: string): KeyObject {
  const raw =
    typeof secret === "string" && secret.startsWith(secretPrefix)
      ? decodeStrictly(secret.slice(secretPrefix.length), "base64")
      : undefined;
  if (raw === undefined)
    throw new TypeError(`a webhook secret must be ${secretPrefix} and base64 of ${keyBytes} bytes`);
  return secretKey("a webhook secret", raw);
}

/** `id.timestamp.body` is unambiguous only if neither of the first two can contain a dot. */
const idShape = /^[^.\s]{1,256}$/;
const timestampShape = /^[0-9]{1,12}$/;

function mac(id: string, timestamp: string, body: string | Buffer, key: KeyObject): Hmac {
  return createHmac("sha256", key).update(`${id}.${timestamp}.`, "utf8").update(body);
}

/**
 * Returns one entry of the header webhook-signature: Standard Webhooks v1, `v1,<base64>`. During a rotation the header
 * has one entry for each key, separated by a space.
 *
 * @param timestampS seconds since 1970, the value of webhook-timestamp
 * @param body the body exactly as it is sent
 * @throws TypeError if the id contains a dot or white space, or the timestamp is not a whole number of seconds.
 */
export function webhookSignature(id: string, timestampS: number, body: string | Buffer, key: KeyObject): string {
  const timestamp = String(timestampS);
  if (!idShape.test(id)) throw new TypeError("a webhook id must not be empty nor hold a dot or white space");
  if (!timestampShape.test(timestamp)) throw new TypeError("a webhook timestamp must be whole seconds since 1970");
  return `v1,${mac(id, timestamp, body, key).digest("base64")}`;
}

/**
 * Whether one entry of the header is a valid signature under one of the keys, in constant time. Entries of other
 * versions are ignored. The caller checks the age of the timestamp.
 */
export function webhookSignatureMatches(
  header: string,
  id: string,
  timestamp: string,
  body: string | Buffer,
  keys: readonly KeyObject[],
): boolean {
  if (typeof header !== "string" || !idShape.test(id) || !timestampShape.test(timestamp)) return false;
  const offered: Buffer[] = [];
  for (const entry of header.split(" ")) {
    const bytes = entry.startsWith("v1,") ? decodeStrictly(entry.slice(3), "base64") : undefined;
    if (bytes?.length === 32) offered.push(bytes);
  }
  // Without a candidate the body need not be hashed.
  if (offered.length === 0) return false;
  for (const key of keys) {
    const expected = mac(id, timestamp, body, key).digest();
    for (const bytes of offered) if (timingSafeEqual(bytes, expected)) return true;
  }
  return false;
}
