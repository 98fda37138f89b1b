import { Buffer } from "node:buffer";
import {
  type CardIpn,
  type ExtendedCardIpn,
  type ExtendedSettlementIpn,
  type FieldSet,
  headerNames,
  NotAuthentic,
  type NotifiedCommand,
  type OpenedIpn,
  openAndVerify,
  type SettlementIpn,
  webhookSignatureMatches,
} from "@paybell/contract/receiving";
import { bodyMistake, explainContent, explainHeaders, type Setup } from "./diagnosis.ts";
import { type HeaderReader, headerReader, quoted, type RequestHeaders, readAttempt, readCommand } from "./headers.ts";
import { jweKeyId, namedAsIn } from "./jwe-key-id.ts";
import { encryptionKeys, refuseSharedKeys, signingKeys, webhookKeys } from "./keys.ts";
import { Misused } from "./misused.ts";
import { bodyBytesMax, type ReceiverOptions, readSettings } from "./options.ts";
import { IpnRefused } from "./refused.ts";
import { isFrom } from "./source-addresses.ts";

interface Delivery {
  /** webhook-id: the same for every attempt. Undefined only with allowMissingHeaders. */
  readonly notificationId: string | undefined;
  /**
   * The command, as the signed IPN says it: PREAUTH and PREAUTH_COMPLETE share their transaction_type with SALE. Only a
   * settlement, and a card IPN with `fields: "extended"`, say it. Without it your own reqId tells what you sent, and
   * `GET /v1/transactions/<id>` what Paybell knows.
   */
  readonly command: NotifiedCommand | undefined;
  /** The id of the voided, completed or refunded transaction, as an extended IPN says it. */
  readonly originalTransactionId: string | undefined;
  /** The claims of unsigned headers. Show them, but decide nothing by them: anybody on the way can change them. */
  readonly headers: UnsignedHeaders;
  /** The fields that it was signed with. */
  readonly fields: FieldSet;
  /** paybell-attempt, from 1. This header and the next one are not signed either. */
  readonly attempt: number | undefined;
  /** An earlier IPN of the same transaction is still to be delivered. */
  readonly outOfOrder: boolean;
  /**
   * The version of the encryption key that opened it: the id you configured, otherwise the one in the message,
   * otherwise empty.
   */
  readonly keyId: string;
}

interface UnsignedHeaders {
  /** paybell-command. */
  readonly command: NotifiedCommand | undefined;
  /** paybell-original-transaction. */
  readonly originalTransactionId: string | undefined;
}

/**
 * An IPN that was decrypted, and whose signatures and freshness were verified. `kind` distinguishes the two bodies.
 * With `fields: "extended"` the IPN says its command, its original and a settlement's currency itself.
 */
export type ReceivedIpn =
  | (Delivery & { readonly kind: "card"; readonly ipn: CardIpn & Partial<ExtendedCardIpn> })
  | (Delivery & { readonly kind: "settlement"; readonly ipn: SettlementIpn & Partial<ExtendedSettlementIpn> });

export interface Receiver {
  /**
   * Verifies webhook-signature and freshness, decrypts the IPN, and verifies its own signature: sections 2 and 5.
   *
   * @param rawBody the bytes exactly as received, before any JSON parser
   * @param remoteAddress the address of the peer; only needed with `sourceAddresses`
   * @throws IpnRefused for anything that is not authentic and fresh, always in the same way
   * @throws Misused if rawBody is not raw, or was not awaited
   */
  open(rawBody: Uint8Array | string, headers: RequestHeaders, remoteAddress?: string): ReceivedIpn;
}

const withoutSource = new WeakMap<Receiver["open"], Receiver["open"]>();

/** Opens an IPN that no peer sent, such as a fetched one: `sourceAddresses` does not concern it. */
export function openWithoutSource(
  receiver: Pick<Receiver, "open">,
  body: string,
  headers: RequestHeaders,
): ReceivedIpn {
  return withoutSource.get(receiver.open)?.(body, headers) ?? receiver.open(body, headers);
}

/**
 * Creates a receiver, which verifies and opens IPNs with the keys and the agreement of your registration.
 *
 * @throws Misused naming the option, the mistake and the remedy; never the value of a key
 */
export function receiver(options: ReceiverOptions): Receiver {
  const settings = readSettings(options);
  const { encryptionKey, signingKey, webhookSecret } = options;
  const setup: Setup = {
    sealing: { cipher: settings.cipher, encoding: settings.encoding },
    signing: settings.signing,
    fields: settings.fields,
    encryption: encryptionKeys(encryptionKey),
    signingKeys: signingKeys(signingKey),
    webhook: webhookKeys(webhookSecret),
  };
  refuseSharedKeys({ encryptionKey, signingKey, webhookSecret });
  const { sealing, encryption } = setup;

  function open(rawBody: Uint8Array | string, headers: RequestHeaders, remoteAddress?: string): ReceivedIpn {
    const body = bufferOf(rawBody);
    const header = headerReader(headers);
    verifySource(remoteAddress, header);
    return openFrom(body, header);
  }

  function openFrom(body: Buffer, header: HeaderReader): ReceivedIpn {
    if (body.length > bodyBytesMax) throw new IpnRefused("too_large");
    const notificationId = verifyHeaders(body, header);
    return describe(openBody(body, header, notificationId !== undefined), notificationId, header);
  }

  function verifySource(remoteAddress: string | undefined, header: HeaderReader): void {
    const { sourceAddresses, trustedProxies } = settings;
    if (sourceAddresses === undefined) return;
    if (!remoteAddress) throw new IpnRefused("source_unknown");
    if (!isFrom(sourceAddresses, trustedProxies, remoteAddress, header("x-forwarded-for") ?? ""))
      throw new IpnRefused("source_address");
  }

  /**
   * Before anything is decrypted: a sender without the webhook secret gets no further than a constant-time comparison.
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
    if (!webhookSignatureMatches(signature, id, timestamp, body, setup.webhook))
      throw explainHeaders(body, header, setup);
    const ageSeconds = Math.floor(settings.clock.nowMs() / 1000) - Number(timestamp);
    if (Math.abs(ageSeconds) > settings.freshnessSeconds) throw new IpnRefused("not_fresh", ageFinding(ageSeconds));
    return id;
  }

  function ageFinding(ageSeconds: number): string {
    const direction = ageSeconds > 0 ? "in the past" : "in the future";
    const lies = `webhook-timestamp lies ${Math.abs(ageSeconds)} s ${direction}, by this machine's clock`;
    return `${lies}; ${settings.freshnessSeconds} s are allowed.`;
  }

  function openBody(body: Buffer, header: HeaderReader, isVerified: boolean): OpenedIpn {
    const text = body.toString("utf8");
    try {
      const keys = sealing.cipher === "jwe" ? namedAsIn(text, encryption) : encryption;
      return openAndVerify(text, { ...setup, encryptionKeys: keys });
    } catch (error) {
      if (!(error instanceof NotAuthentic)) throw error;
      // Other settings are tried only for the holder of the webhook secret: a stranger must learn nothing from the
      // time.
      const explained = isVerified ? explainContent(text, error.reason, setup) : undefined;
      throw explained ?? new IpnRefused(bodyMistake(body) ?? error.reason, keyFinding(error.reason, text, header));
    }
  }

  function keyFinding(reason: string, text: string, header: HeaderReader): string {
    if (reason !== "decryption" && reason !== "unknown_key") return "";
    const named = sealing.cipher === "jwe" ? jweKeyId(text) : header(headerNames.key);
    return named ? `No encryptionKey decrypts it, and the message names the key version ${quoted(named)}.` : "";
  }

  withoutSource.set(open, (body, headers) => openFrom(bufferOf(body), headerReader(headers)));
  return { open };
}

function describe(opened: OpenedIpn, notificationId: string | undefined, header: HeaderReader): ReceivedIpn {
  const { kind, fields, ipn } = opened;
  const { command, originalId }: Partial<ExtendedCardIpn> = ipn as CardIpn;
  const delivery: Delivery = {
    notificationId,
    command: kind === "settlement" ? "SETTLEMENT" : readCommand(command, kind),
    originalTransactionId: originalId === "" ? undefined : originalId,
    headers: {
      command: readCommand(header(headerNames.command), kind),
      originalTransactionId: header(headerNames.originalTransaction),
    },
    fields,
    attempt: readAttempt(header(headerNames.attempt)),
    outOfOrder: header(headerNames.outOfOrder) === "1",
    keyId: opened.keyId === "" ? (header(headerNames.key) ?? "") : opened.keyId,
  };
  return { ...delivery, kind, ipn } as ReceivedIpn;
}

function bufferOf(rawBody: unknown): Buffer {
  if (typeof rawBody === "string") return Buffer.from(rawBody, "utf8");
  if (Buffer.isBuffer(rawBody)) return rawBody;
  if (rawBody instanceof Uint8Array) return Buffer.from(rawBody.buffer, rawBody.byteOffset, rawBody.byteLength);
  if (rawBody instanceof Promise) throw new Misused("missing_await", "The raw body");
  throw new Misused("not_raw");
}
