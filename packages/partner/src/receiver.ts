import {
  type CardIpn,
  headerNames,
  NotAuthentic,
  type NotifiedCommand,
  type OpenedIpn,
  openAndVerify,
  type SealingKey,
  type SettlementIpn,
  webhookSignatureMatches,
} from "@paybell/contract";
import { type HeaderReader, headerReader, quoted, type RequestHeaders, readAttempt, readCommand } from "./headers.ts";
import { encryptionKeys, refuseSharedKeys, signingKeys, webhookKeys } from "./keys.ts";
import { bodyBytesMax, type ReceiverOptions, readSettings } from "./options.ts";
import { IpnRefused } from "./refused.ts";

interface Delivery {
  /** webhook-id: the same at every attempt. Undefined only where allowMissingHeaders let it be. */
  readonly notificationId: string | undefined;
  /**
   * paybell-attempt, from 1. This header and the next three are signed by nothing: show them, decide nothing by them.
   */
  readonly attempt: number | undefined;
  /** paybell-command: tells PREAUTH and PREAUTH_COMPLETE from SALE, which share a transaction_type. */
  readonly command: NotifiedCommand | undefined;
  /** paybell-original-transaction: the id of the transaction that was voided or completed. */
  readonly originalTransactionId: string | undefined;
  /** An earlier IPN of the same transaction is still on its way. */
  readonly outOfOrder: boolean;
  /**
   * The version of the encryption key that opened it: the id you gave it, else the one the message names, else empty.
   */
  readonly keyId: string;
}

/** An IPN whose seal, signatures and freshness were all checked. `kind` tells which of the two bodies `ipn` is. */
export type ReceivedIpn =
  | (Delivery & { readonly kind: "card"; readonly ipn: CardIpn })
  | (Delivery & { readonly kind: "settlement"; readonly ipn: SettlementIpn });

export interface Receiver {
  /**
   * Verifies webhook-signature and freshness, opens the seal, verifies the IPN's own signature: sections 2 and 5.
   *
   * @param rawBody the bytes exactly as they came, before any JSON parser
   * @throws IpnRefused for whatever is not authentic and fresh, always alike
   * @throws TypeError when rawBody is not raw
   */
  open(rawBody: Uint8Array | string, headers: RequestHeaders): ReceivedIpn;
}

/** @throws TypeError naming the option, the mistake and the remedy; never the value of a key. */
export function receiver(options: ReceiverOptions): Receiver {
  const settings = readSettings(options);
  const { encryptionKey, signingKey, webhookSecret } = options;
  const encryption = encryptionKeys(encryptionKey);
  const webhook = webhookKeys(webhookSecret);
  const how = { sealing: settings, signing: settings.signing, signingKeys: signingKeys(signingKey) };
  refuseSharedKeys({ encryptionKey, signingKey, webhookSecret });

  function open(rawBody: Uint8Array | string, headers: RequestHeaders): ReceivedIpn {
    const body = bufferOf(rawBody);
    if (body.length > bodyBytesMax) throw new IpnRefused("too_large");
    const header = headerReader(headers);
    const notificationId = verifyHeaders(body, header);
    return describe(openBody(body.toString("utf8"), header), notificationId, header);
  }

  /**
   * Before anything is decrypted: whoever does not hold the webhook secret gets no further than a constant-time
   * compare.
   */
  function verifyHeaders(body: Buffer, header: HeaderReader): string | undefined {
    const id = header(headerNames.id);
    const timestamp = header(headerNames.timestamp);
    const signature = header(headerNames.signature);
    if (id === undefined || timestamp === undefined || signature === undefined) {
      const noneIsThere = id === undefined && timestamp === undefined && signature === undefined;
      if (settings.allowMissingHeaders && noneIsThere) return undefined;
      throw new IpnRefused("missing_headers");
    }
    if (!webhookSignatureMatches(signature, id, timestamp, body, webhook)) throw new IpnRefused("webhook_signature");
    const ageSeconds = Math.floor(settings.clock.nowMs() / 1000) - Number(timestamp);
    if (Math.abs(ageSeconds) > settings.freshnessSeconds) throw new IpnRefused("not_fresh", ageFinding(ageSeconds));
    return id;
  }

  function ageFinding(ageSeconds: number): string {
    const direction = ageSeconds > 0 ? "in the past" : "in the future";
    const lies = `webhook-timestamp lies ${Math.abs(ageSeconds)} s ${direction}, by this machine's clock`;
    return `${lies}; ${settings.freshnessSeconds} s are allowed.`;
  }

  function openBody(text: string, header: HeaderReader): OpenedIpn {
    try {
      return openAndVerify(text, { ...how, encryptionKeys: keysFor(text) });
    } catch (error) {
      if (!(error instanceof NotAuthentic)) throw error;
      throw new IpnRefused(error.reason, keyFinding(error.reason, text, header));
    }
  }

  /** A JWE names its key; a key that was given without an id stands for whichever is named. */
  function keysFor(text: string): readonly SealingKey[] {
    if (settings.cipher !== "jwe" || encryption.every((version) => version.id !== "")) return encryption;
    const named = jweKeyId(text);
    return encryption.map((version) => (version.id === "" ? { id: named, key: version.key } : version));
  }

  function keyFinding(reason: string, text: string, header: HeaderReader): string {
    if (reason !== "decryption" && reason !== "unknown_key") return "";
    const named = settings.cipher === "jwe" ? jweKeyId(text) : header(headerNames.key);
    return named === undefined || named === "" ? "" : `The message names the key version ${quoted(named)}.`;
  }

  return { open };
}

function describe(opened: OpenedIpn, notificationId: string | undefined, header: HeaderReader): ReceivedIpn {
  const delivery: Delivery = {
    notificationId,
    attempt: readAttempt(header(headerNames.attempt)),
    command: readCommand(header(headerNames.command), opened.kind),
    originalTransactionId: header(headerNames.originalTransaction),
    outOfOrder: header(headerNames.outOfOrder) === "1",
    keyId: opened.keyId === "" ? (header(headerNames.key) ?? "") : opened.keyId,
  };
  return { ...delivery, kind: opened.kind, ipn: opened.ipn } as ReceivedIpn;
}

function bufferOf(rawBody: unknown): Buffer {
  if (typeof rawBody === "string") return Buffer.from(rawBody, "utf8");
  if (Buffer.isBuffer(rawBody)) return rawBody;
  if (rawBody instanceof Uint8Array) return Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  throw new TypeError(
    "open() needs the raw body as it was received (bytes or text), not what a JSON parser made of it: " +
      "read the request before the parser does.",
  );
}

/** The kid as it stands in the message; whether it is that of a whole JWE header, opening it will tell. */
function jweKeyId(body: string): string {
  const header = /"data"\s*:\s*"([A-Za-z0-9_-]{1,1024})\./.exec(body)?.[1];
  if (header === undefined) return "";
  try {
    const { kid } = Object(JSON.parse(Buffer.from(header, "base64url").toString("utf8"))) as { kid?: unknown };
    return typeof kid === "string" ? kid : "";
  } catch {
    return "";
  }
}
