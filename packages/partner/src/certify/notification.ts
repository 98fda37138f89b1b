import { randomUUID } from "node:crypto";
import {
  type IpnKind,
  type NotifiedCommand,
  notificationHeaders,
  seal,
  sign,
  signedString,
  toWire,
  type WireNames,
} from "@paybell/contract";
import type { SealerKeys } from "./keys.ts";
import type { HttpPost } from "./post.ts";

/** One notification: the same content and webhook-id however often it is posted. */
export interface SampleNotification {
  readonly kind: IpnKind;
  readonly command: NotifiedCommand;
  /** By the tables' names. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly notificationId: string;
  readonly originalId?: string | undefined;
  readonly originalReqId?: string | undefined;
  readonly outOfOrder?: boolean;
}

/** The differences of a post from the service's; each is applied at its own step, in this order. */
export interface Deviation {
  readonly wireNames?: WireNames;
  /** The IPN before it is signed. */
  readonly unsigned?: (wire: Record<string, unknown>) => Record<string, unknown>;
  /** The IPN's own signature. */
  readonly signature?: (signature: string) => string;
  /** The IPN after it was signed. */
  readonly signed?: (wire: Record<string, unknown>) => Record<string, unknown>;
  /** The IPN's JSON text before it is sealed. */
  readonly text?: (text: string) => string;
  readonly keys?: Partial<SealerKeys>;
  /** The body before the headers sign it. */
  readonly body?: (body: string) => string;
  /** The body after the headers signed it. */
  readonly sentBody?: (body: string) => string;
  /** The age of the signature; negative: signed after now. */
  readonly ageSeconds?: number;
  readonly headers?: (headers: Record<string, string>) => Record<string, string>;
  readonly attempt?: number;
  readonly pace?: "slow" | "cut";
}

export function cardNotification(
  command: NotifiedCommand,
  facts: SampleNotification["facts"],
  more: Pick<SampleNotification, "originalId" | "originalReqId" | "outOfOrder"> = {},
): SampleNotification {
  return { kind: "card", command, facts, notificationId: randomUUID(), ...more };
}

export function settlementNotification(facts: object): SampleNotification {
  return { kind: "settlement", command: "SETTLEMENT", facts: { ...facts }, notificationId: randomUUID() };
}

/** Signs and encrypts as the service does at each attempt (sections 4.1 and 5), except for the deviations. */
export function makePost(
  keys: SealerKeys,
  notification: SampleNotification,
  nowMs: number,
  deviation: Deviation = {},
): HttpPost {
  const { signing, fields, sealing, encryptionKey, signingKey, webhookSecret } = { ...keys, ...deviation.keys };
  const { unsigned = same, signature = same, signed = same, text = same, body = same, sentBody = same } = deviation;
  const { kind, command, originalId, originalReqId } = notification;
  // Only an extended IPN has the first four.
  const facts = { command, originalId, originalReqId, currency: "VND", ...notification.facts };
  const wire = unsigned(toWire(kind, facts, deviation.wireNames ?? "table", fields));
  const covered = signedString(kind, wire, signing, fields);
  const signatureFound = sign(covered, signingKey);
  const content = text(JSON.stringify(signed({ ...wire, signature: signature(signatureFound) })));
  const bodySigned = body(JSON.stringify({ data: seal(content, sealing, encryptionKey) }));
  const headers = notificationHeaders({
    id: notification.notificationId,
    command: notification.command,
    attemptNo: deviation.attempt ?? 1,
    body: bodySigned,
    timestampS: Math.floor(nowMs / 1_000) - (deviation.ageSeconds ?? 0),
    webhookKeys: [webhookSecret],
    cipher: sealing.cipher,
    keyId: encryptionKey.id,
    userAgent: plainHeaders["user-agent"],
    originalId: notification.originalId,
    outOfOrder: notification.outOfOrder,
  });
  return {
    method: "POST",
    headers: (deviation.headers ?? same)(headers),
    body: sentBody(bodySigned),
    signedString: covered,
    ...(deviation.pace === undefined ? {} : { pace: deviation.pace }),
  };
}

/** The headers of section 4.1, and the user agent. */
export const plainHeaders = {
  accept: "application/json",
  "content-type": "application/json",
  "user-agent": "Paybell certify",
} as const;

function same<Value>(value: Value): Value {
  return value;
}
