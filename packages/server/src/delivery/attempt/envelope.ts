import { type NotifiedCommand, notificationHeaders, seal, sign, signedString, toWire } from "@paybell/contract";
import type { NotificationId, PartnerId, TransactionId } from "../../ids.ts";
import type { IpnFacts } from "../../ipn/facts.ts";
import { renderExtended, renderIpn } from "../../ipn/render.ts";
import type { Partner } from "../../partners/partner.ts";

/** The input of one attempt in addition to the notification's facts. */
export interface EnvelopeFor {
  readonly notificationId: NotificationId;
  readonly command: NotifiedCommand;
  readonly originalId: TransactionId | null;
  /** Its reqId, for an extended IPN: `originalReqIdFor`. */
  readonly originalReqId?: string;
  /** 1 for the first POST. */
  readonly attemptNo: number;
  /** The URL of this attempt: a settlement IPN contains it. */
  readonly callbackUrl: string;
  /** It is sent before an earlier one of its chain was accepted. */
  readonly outOfOrder: boolean;
  readonly nowMs: number;
}

/** The partner fields that determine how its notifications are sealed. */
export type SealedFor = Pick<Partner, "settings" | "keys">;

/** The reqId of a transaction; empty if it has none. */
export type ReqIdOf = (partnerId: PartnerId, id: TransactionId) => Promise<string>;

/** Reads what an extended IPN says of its original, if the facts do not have it. Other IPNs need nothing. */
export function originalReqIdFor(
  { id, settings }: Pick<Partner, "id" | "settings">,
  { originalId, content }: { readonly originalId: TransactionId | null; readonly content: string },
  reqIdOf: ReqIdOf,
): Promise<string> | undefined {
  if (settings.fields !== "extended" || originalId === null) return undefined;
  const facts = readFacts(content);
  return facts.kind === "card" && facts.originalReqId === undefined ? reqIdOf(id, originalId) : undefined;
}

/** One attempt's bytes: section 4.1. */
export interface Envelope {
  readonly headers: Readonly<Record<string, string>>;
  /** `{"data": "…"}`: section 2.1. */
  readonly body: Buffer;
  /** The version of the encryption key that sealed it. */
  readonly keyId: string;
  /** The IPN in it, and the text that was signed: section 5.1. */
  readonly wire: Readonly<Record<string, unknown>>;
  readonly signedText: string;
}

/**
 * Signs and seals a notification as the partner is configured now. Only its facts were fixed when it was created, so a
 * corrected setting applies to queued notifications. Each call is one seal: spend it from the SealBudget first.
 * Measured: 17 µs for a card IPN, from facts to signed headers.
 *
 * @param content the facts as JSON text
 */
export function makeEnvelope(content: string, partner: SealedFor, attempt: EnvelopeFor): Envelope {
  const { settings, keys } = partner;
  const facts = readFacts(content);
  const { fields } = settings;
  const { kind, ipn } =
    fields === "extended" ? renderExtended(facts, settings, attempt) : renderIpn(facts, settings, attempt);
  const wire = toWire(kind, ipn as unknown as Record<string, unknown>, settings.wireNames, fields);
  const signedText = signedString(kind, wire, settings.signing, fields);
  wire["signature"] = sign(signedText, keys.signing.key);
  const body = bodyOf(seal(JSON.stringify(wire), settings, keys.encryption));
  const headers = notificationHeaders({
    id: attempt.notificationId,
    command: attempt.command,
    attemptNo: attempt.attemptNo,
    body,
    timestampS: Math.floor(attempt.nowMs / 1_000),
    webhookKeys: keys.webhook.map(({ key }) => key),
    cipher: settings.cipher,
    keyId: keys.encryption.id,
    userAgent: "Paybell",
    contract: settings.contract,
    originalId: attempt.originalId,
    outOfOrder: attempt.outOfOrder,
  });
  return { headers, body, keyId: keys.encryption.id, wire, signedText };
}

const bodyLead = '{"data":"';
const bodyEnd = '"}';

/** Base64, base64url, hexadecimal and a compact JWE are ASCII, and contain nothing that JSON would escape. */
function bodyOf(data: string): Buffer {
  const body = Buffer.allocUnsafe(bodyLead.length + data.length + bodyEnd.length);
  body.write(bodyLead, "latin1");
  body.write(data, bodyLead.length, "latin1");
  body.write(bodyEnd, bodyLead.length + data.length, "latin1");
  return body;
}

/** The sealed IPN in a body that was made here. Parsing 5 MB of JSON for it would block the event loop. */
export function dataOf(body: Buffer): string {
  return body.toString("latin1", bodyLead.length, body.length - bodyEnd.length);
}

function readFacts(content: string): IpnFacts {
  try {
    return JSON.parse(content) as IpnFacts;
  } catch {
    // The parser's own message quotes the text, and so card data.
    throw new TypeError("The notification's facts are no JSON.");
  }
}
