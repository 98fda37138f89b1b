import { createSecretKey, type KeyObject, randomBytes, randomInt, randomUUID } from "node:crypto";
import {
  type CardIpn,
  type FieldSet,
  type IpnKind,
  type NotifiedCommand,
  notificationHeaders,
  type Sealing,
  type SealingKey,
  type SettlementEntry,
  type SettlementIpn,
  type Signing,
  sampleSale,
  seal,
  sealingKey,
  sign,
  signedString,
  toWire,
  type UnsignedIpn,
  type WireNames,
} from "@paybell/contract";
import { encryptionKeys, signingKeys, webhookKeys } from "../receiver/keys.ts";
import { type ReceiverOptions, readSettings } from "../receiver/options.ts";
import type { HttpPost } from "./post.ts";

/** Everything a notification is sealed and signed with. */
export interface SealerKeys {
  readonly sealing: Sealing;
  readonly signing: Signing;
  readonly fields: FieldSet;
  /** The endpoint accepts the other set of fields too, while the setting changes. */
  readonly acceptsBothFields?: boolean;
  readonly encryptionKey: SealingKey;
  readonly signingKey: KeyObject;
  readonly webhookSecret: KeyObject;
  /** Those that sign beside it, as during a rotation. */
  readonly otherWebhookSecrets?: readonly KeyObject[];
}

/**
 * The keys that the service would use: the first of several versions, and of several sets of fields.
 *
 * @param options those of the endpoint's own receiver
 * @throws Misused naming the option and the mistake
 */
export function sealerKeys(options: ReceiverOptions): SealerKeys {
  const { cipher, encoding, signing, fields: sets } = readSettings(options);
  const [fields = "specification", other] = sets;
  return {
    sealing: { cipher, encoding },
    signing,
    fields,
    acceptsBothFields: other !== undefined,
    signingKey: first(signingKeys(options.signingKey)),
    encryptionKey: first(encryptionKeys(options.encryptionKey)),
    webhookSecret: first(webhookKeys(options.webhookSecret)),
  };
}

/** A key that the endpoint does not know, under the id of the one it does. */
export function strangeSealingKey(id: string): SealingKey {
  return sealingKey(id, randomBytes(32));
}

export function strangeKey(): KeyObject {
  return createSecretKey(randomBytes(32));
}

/** An option without any version was refused. */
function first<Key>([key]: readonly Key[]): Key {
  return key as Key;
}

type CardFacts = Partial<UnsignedIpn<CardIpn>>;
export type SampleSettlementFacts = Partial<UnsignedIpn<SettlementIpn>>;

/** A partner's program recognises certify's IPNs by these, and discards them. */
export const marks = {
  /** merchantTransId begins with it, in both bodies. */
  merchantTransId: "CERTIFY-",
  tid: "CERTIFY1",
  mid: "CERTIFY00000001",
} as const;

/** The IPNs of one run: plausible facts that are recognisable as test data. */
export class Facts {
  /** Distinguishes one run's notifications from another's. */
  readonly run: string;
  readonly #nowMs: () => number;
  #traceNo = 0;
  /** Six digits, as a batch number has; another run's are most likely others. */
  #batchNo = randomInt(900_000);

  constructor(run: string, nowMs: () => number) {
    this.run = run;
    this.#nowMs = nowMs;
  }

  /** An approved card command of 1 VND. */
  card(code: string, changes: CardFacts = {}): Required<Pick<CardFacts, "id" | "reqId" | "refId">> & CardFacts {
    const traceNo = this.#nextTraceNo();
    return {
      ...sampleSale,
      ...this.#both(code),
      amount: "1",
      appName: "Paybell certify",
      approveCode: "000000",
      billId: "CERTIFY",
      cardHolder: "TEST CARD",
      invoiceNo: traceNo,
      merchantId: marks.mid,
      merchantName: "Paybell certify",
      refId: `000000${traceNo}`,
      traceNo,
      transDateTime: this.#time(),
      transaction_type: "SALE",
      ...changes,
    };
  }

  /** The number of the batch that card commands are in from now on. */
  newBatch(): string {
    this.#batchNo += 1;
    return this.batchNo;
  }

  get batchNo(): string {
    return String(this.#batchNo).padStart(6, "0");
  }

  /** A Void, or a PreAuth-Complete: it has an id and a reqId of its own, and the rest of what it follows. */
  following(original: CardFacts, changes: CardFacts): CardFacts & { readonly id: string; readonly reqId: string } {
    const own = { id: randomUUID(), reqId: randomUUID(), traceNo: this.#nextTraceNo(), transDateTime: this.#time() };
    return { ...original, ...own, ...changes };
  }

  /** The settlement of the newest batch, of Sales of 1 VND each. */
  settlement(
    code: string,
    settlementList: SettlementEntry[],
    changes: SampleSettlementFacts = {},
  ): SampleSettlementFacts {
    const count = String(settlementList.length);
    return {
      ...this.#both(code),
      quantity: count,
      saleQuantity: count,
      saleTotalAmount: count,
      settlementList,
      totalAmount: count,
      transaction_time: this.#time(),
      transaction_type: "SETTLE",
      voidQuantity: "0",
      voidTotalAmount: "0",
      ...changes,
    };
  }

  #both(code: string) {
    return {
      batchNo: this.batchNo,
      deviceId: "CERTIFY",
      extraData: JSON.stringify({ test: true, note: "Made up by paybell certify: no card was charged." }),
      id: randomUUID(),
      merchantTransId: `${marks.merchantTransId}${this.run}-${code}`,
      mid: marks.mid,
      reqId: randomUUID(),
      status: "SUCCESS",
      tid: marks.tid,
    };
  }

  #nextTraceNo(): string {
    this.#traceNo += 1;
    return String(this.#traceNo).padStart(6, "0");
  }

  /** yyyymmddhhmmss, UTC. */
  #time(): string {
    return new Date(this.#nowMs()).toISOString().slice(0, 19).replaceAll(/[-:T]/g, "");
  }
}

/** One notification: the same content and webhook-id however often it is posted. */
export interface SampleNotification {
  readonly kind: IpnKind;
  readonly command: NotifiedCommand;
  /** By the tables' names. */
  readonly facts: Readonly<Record<string, unknown>>;
  readonly notificationId: string;
  readonly originalId?: string | undefined;
  readonly originalReqId?: string | undefined;
  readonly outOfOrder?: boolean | undefined;
}

/** The differences of a post from the service's; each is applied at its own step, in this order. */
export interface Deviation {
  readonly wireNames?: WireNames | undefined;
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
  readonly attempt?: number | undefined;
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
  const used = { ...keys, ...deviation.keys };
  const { signing, fields, sealing, encryptionKey, signingKey, webhookSecret, otherWebhookSecrets = [] } = used;
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
    webhookKeys: [webhookSecret, ...otherWebhookSecrets],
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
