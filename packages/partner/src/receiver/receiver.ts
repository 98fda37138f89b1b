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
import { Misused } from "../errors/misused.ts";
import { IpnRefused } from "../errors/refused.ts";
import { bodyMistake, explainContent, explainHeaders, type Setup } from "./diagnosis.ts";
import { type HeaderReader, headerReader, quoted, type RequestHeaders, readAttempt, readCommand } from "./headers.ts";
import { encryptionKeys, jweKeyId, namedAsIn, refuseSharedKeys, signingKeys, webhookKeys } from "./keys.ts";
import { bodyBytesMax, type ReceiverOptions, readSettings } from "./options.ts";
import { isFrom } from "./source-addresses.ts";

interface Delivery {
  /** webhook-id: the same for every attempt. Undefined only with allowMissingHeaders. */
  readonly notificationId: string | undefined;
  /**
   * The signed command, of a settlement or an extended IPN. Otherwise your reqId or `GET /v1/transactions/<id>` tells
   * it: PREAUTH and PREAUTH_COMPLETE have the transaction_type SALE.
   */
  readonly command: NotifiedCommand | undefined;
  /** The id of the voided, completed or refunded transaction: signed, if extended. */
  readonly originalTransactionId: string | undefined;
  /** Unsigned: decide nothing by them. */
  readonly headers: UnsignedHeaders;
  /** The fields it was signed with. */
  readonly fields: FieldSet;
  /** paybell-attempt, from 1; unsigned, like the next. */
  readonly attempt: number | undefined;
  /** An earlier IPN of the same transaction is still to be delivered. */
  readonly outOfOrder: boolean;
  /**
   * The encryption key that opened it: your id for it, or the message's, or empty.
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
 * A verified, fresh, decrypted IPN. With `fields: "extended"` it says its command, its original and a settlement's
 * currency.
 */
export type ReceivedIpn =
  | (Delivery & { readonly kind: "card"; readonly ipn: CardIpn & Partial<ExtendedCardIpn> })
  | (Delivery & { readonly kind: "settlement"; readonly ipn: SettlementIpn & Partial<ExtendedSettlementIpn> });

export interface Receiver {
  /**
   * Verifies and decrypts an IPN (sections 2 and 5).
   *
   * @param rawBody the bytes as received, before any JSON parser
   * @param remoteAddress the peer's, for `sourceAddresses`
   * @throws IpnRefused if it is not authentic and fresh
   * @throws Misused if rawBody is not raw, or was not awaited
   */
  open(rawBody: Uint8Array | string, headers: RequestHeaders, remoteAddress?: string): ReceivedIpn;
}

const withoutSource = new WeakMap<Receiver["open"], Receiver["open"]>();

/** Opens a fetched IPN: `sourceAddresses` does not concern it. */
export function openWithoutSource(
  receiver: Pick<Receiver, "open">,
  body: string,
  headers: RequestHeaders,
): ReceivedIpn {
  return withoutSource.get(receiver.open)?.(body, headers) ?? receiver.open(body, headers);
}

/**
 * Creates a receiver with the keys and the agreement of your registration.
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
