import { clockAheadOf } from "../clock.ts";
import type { ChainId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Addressed } from "../notification.ts";

/** One notification to be delivered, with everything that an attempt needs. */
export interface Delivery extends Required<Addressed> {
  readonly partnerId: PartnerId;
  readonly id: NotificationId;
  /** Named when it was committed, by its URL at that time: `queueOf`. */
  readonly queue: string;
  /** Increased by each redelivery. */
  readonly round: number;
  /** POSTs of this round before the next one. */
  readonly attemptsMade: number;
  /** POSTs of these, and the next one, that a person asked for while it waited: the schedule does not count them. */
  readonly asked?: number;
  /** How often people had asked for it to be sent now, when it was read. */
  readonly requests?: number;
  /** POSTs of the rounds before this one, as far as history has them. */
  readonly attemptsBefore: number;
  /** The start of the schedule: creation, or the requested redelivery. Milliseconds since 1970. */
  readonly scheduleStartMs: number;
  /** By how much this machine's clock was ahead of the database's: see `scheduleAgeMs`. */
  readonly clockAheadMs?: number;
  readonly chainId: ChainId;
  /** It is sent after the earlier ones of its chain. */
  readonly follows: boolean;
  /** A settlement is sent after the notifications of this batch. */
  readonly settlesBatch: string | null;
  readonly transactionId: TransactionId | null;
  readonly originalId: TransactionId | null;
  /** Set if the original is known only by the switch's id, and `originalId` was looked up by it. */
  readonly originalExternalId?: string | null;
  /** The facts as JSON text. */
  readonly content: string;
  /** As read from the database, null: it has none. Absent: the content comes from this process. */
  readonly mac?: Buffer | null;
  /** The size of the content in UTF-8. */
  readonly bytes: number;
}

type NewDelivery = Pick<
  Delivery,
  | "partnerId"
  | "id"
  | "queue"
  | "chainId"
  | "follows"
  | "settlesBatch"
  | "transactionId"
  | "originalId"
  | "command"
  | "callBackUrl"
  | "content"
>;

/**
 * The age of the schedule, by the clock by which it began: the database's. This machine's may be hours off until it is
 * synchronised, and a short schedule would be over at once.
 *
 * @param nowMs by this machine's clock
 */
export function scheduleAgeMs(delivery: Pick<Delivery, "scheduleStartMs" | "clockAheadMs">, nowMs: number): number {
  return nowMs - (delivery.clockAheadMs ?? 0) - delivery.scheduleStartMs;
}

/** A notification that was just created, before its first attempt. @param createdAtMs by the database's clock */
export function firstDelivery(notification: NewDelivery, createdAtMs: number, nowMs: number): Delivery {
  const { partnerId, id, transactionId, originalId, chainId, command, callBackUrl, queue, content } = notification;
  return {
    partnerId,
    id,
    queue,
    round: 0,
    attemptsMade: 0,
    attemptsBefore: 0,
    scheduleStartMs: createdAtMs,
    clockAheadMs: clockAheadOf(createdAtMs, nowMs),
    chainId,
    follows: notification.follows,
    settlesBatch: notification.settlesBatch,
    toRegistered: false,
    transactionId,
    originalId,
    command,
    callBackUrl,
    content,
    bytes: Buffer.byteLength(content),
  };
}

/** The key of a queue: the deliveries pending for one partner at one registered URL, or at one callback origin. */
export interface QueueKey {
  readonly partnerId: PartnerId;
  readonly queue: string;
}

/** The reason of a failed attempt. Stable values: metrics, the APIs and the console show them. */
export const failureReasons = [
  "no_callback_url",
  "address_refused",
  "dns",
  "connect",
  "connect_timeout",
  "tls",
  "timeout",
  "reset",
  "bad_response",
  "redirect",
  "status",
  "too_large",
  "gone",
  "rate_limited",
  "key_exhausted",
  "content_changed",
  "egress",
  "internal",
] as const;
export type FailureReason = (typeof failureReasons)[number];

/** One POST, as it is recorded. */
export interface Attempt {
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly url: string;
  /** The address connected to; null without a connection. */
  readonly address: string | null;
  readonly httpStatus: number | null;
  readonly reason: FailureReason | null;
  /** A description for the operator. */
  readonly detail: string | null;
  /** The first 4 KiB of a response that was not 2xx. */
  readonly answer: Buffer | null;
  /** The version of the key that sealed it. */
  readonly keyId: string | null;
}
