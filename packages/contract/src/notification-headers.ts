import type { Buffer } from "node:buffer";
import type { KeyObject } from "node:crypto";
import type { NotifiedCommand } from "./commands.ts";
import { type ContractVersion, contractVersion, headerNames, webhookSignature } from "./headers.ts";
import type { Cipher } from "./sealing.ts";

/** One POST of a notification, before it has its headers. */
export interface PostedNotification {
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
