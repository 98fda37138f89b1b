import { createHmac, type Hmac, type KeyObject, timingSafeEqual } from "node:crypto";
import { decodeStrictly } from "./cryptography/encoding.ts";
import { keyBytes, secretKey } from "./cryptography/keys.ts";
import type { Cipher } from "./cryptography/sealing.ts";
import type { NotifiedCommand } from "./fields/commands.ts";

/** The names of a notification's headers beyond those of section 4.1. The first three are Standard Webhooks v1. */
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

/** One POST of a notification, before it has its headers. */
interface PostedNotification {
  readonly id: string;
  readonly command: NotifiedCommand;
  /** 1 for the first POST. */
  readonly attemptNo: number;
  /** The body exactly as it is sent. */
  readonly body: string | Buffer;
  /** When it is signed, in seconds since 1970. */
  readonly timestampS: number;
  /** The keys that sign it: two during a rotation. */
  readonly webhookKeys: readonly KeyObject[];
  readonly cipher: Cipher;
  /** The version of the key that sealed it; empty if versions have no ids. */
  readonly keyId: string;
  readonly userAgent: string;
  /** The version of the contract; default the current one. */
  readonly contract?: ContractVersion | undefined;
  /** The transaction that a Void, PreAuth-Complete or Refund refers to. */
  readonly originalId?: string | null | undefined;
  /** It is sent before an earlier one of its chain was accepted. */
  readonly outOfOrder?: boolean | undefined;
}

/** The headers of one POST: those of section 4.1, and `headerNames`. */
export function notificationHeaders(posted: PostedNotification): Record<string, string> {
  const { id, timestampS, body, webhookKeys, originalId, outOfOrder } = posted;
  const headers: Record<string, string> = {
    accept: "application/json",
    "content-type": "application/json",
    "user-agent": posted.userAgent,
    [headerNames.id]: id,
    [headerNames.timestamp]: String(timestampS),
    [headerNames.signature]: webhookKeys.map((key) => webhookSignature(id, timestampS, body, key)).join(" "),
    [headerNames.attempt]: String(posted.attemptNo),
    [headerNames.contract]: posted.contract ?? contractVersion,
    [headerNames.command]: posted.command,
  };
  // A JWE names its key itself, as kid.
  if (posted.cipher !== "jwe" && posted.keyId !== "") headers[headerNames.key] = posted.keyId;
  if (originalId !== undefined && originalId !== null) headers[headerNames.originalTransaction] = originalId;
  if (outOfOrder === true) headers[headerNames.outOfOrder] = "1";
  return headers;
}
