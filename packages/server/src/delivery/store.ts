import type { ChainId, EventId, LeaseId, NotificationId, PartnerId, TransactionId } from "../ids.ts";
import type { Addressed } from "../registered-url.ts";
import type { CircuitChange } from "./circuit.ts";

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
  /** POSTs of the rounds before this one, as far as history has them. */
  readonly attemptsBefore: number;
  /** The start of the schedule: creation, or the requested redelivery. Milliseconds since 1970. */
  readonly scheduleStartMs: number;
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

/** The key of a queue: the deliveries pending for one partner at one registered URL, or at one callback origin. */
export interface QueueKey {
  readonly partnerId: PartnerId;
  readonly queue: string;
}

/** A hint that something of a partner is due. */
export interface Hint extends Pick<QueueKey, "partnerId"> {
  /** Undefined: any of its queues. */
  readonly queue?: string;
  /** When it became due, in milliseconds since 1970 by the database's clock; undefined: unknown. */
  readonly sinceMs?: number;
}

/** A position in a queue, in the order of due times. */
export interface QueuePosition {
  /** Microseconds since 1970, by the database's clock. */
  readonly dueAtUs: number;
  readonly id: NotificationId;
}

/** Reads the rows after `after` in a queue; from its head if that is undefined. */
export interface QueueRead extends QueueKey {
  readonly after: QueuePosition | undefined;
  readonly rowsMax: number;
  /** The bound of content; the first row is read whatever its size. */
  readonly bytesMax: number;
}

export interface QueuePage {
  /** The due rows, in order; without its delivery if history no longer has it. */
  readonly due: readonly (QueuePosition & { readonly delivery: Delivery | undefined })[];
  /** There may be more due rows: a bound was reached. */
  readonly hasMore: boolean;
  /** When the next one is due, in milliseconds from now; undefined if there is none, or if there are more due rows. */
  readonly nextInMs: number | undefined;
}

/** The first delivery of a queue. */
export interface QueueHead extends QueueKey, Pick<Delivery, "id" | "round" | "attemptsMade"> {
  readonly dueInMs: number;
}

/** Whether a delivery that follows others must wait. */
export interface Precedence {
  /** An earlier one of its chain or batch that is pending; undefined: none. */
  readonly after: NotificationId | undefined;
  /** Its age by the database's clock. */
  readonly ageMs: number;
}

/** A delivery in an outcome: only this very round and attempt is changed. */
export type DeliveryKey = Pick<Delivery, "partnerId" | "id" | "round" | "attemptsMade">;

/** Nothing was sent: due again after `delayMs`, and no attempt is counted. */
export interface Postponement extends DeliveryKey {
  readonly delayMs: number;
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

/** The result of one attempt. Recording it is repeated until it is known to be stored, also after the lease is lost. */
export interface DeliveryOutcome extends DeliveryKey {
  readonly leaseId: LeaseId;
  readonly attempt: Attempt;
  readonly next:
    | { readonly kind: "accepted" }
    | { readonly kind: "retry"; readonly delayMs: number }
    /**
     * `eventId` is made once, so that the event is written once however often the record is repeated. `attemptsInAll`
     * are those of all its rounds, which the event tells.
     */
    | { readonly kind: "parked"; readonly eventId: EventId; readonly attemptsInAll: number };
  /** Its changes of the endpoint's circuit. */
  readonly circuits: readonly CircuitChange[];
}

/** `missed`: the row belongs to a later round or attempt, or is gone; the attempt was recorded and changed nothing. */
export type Recorded = "applied" | "missed";

/** Pending deliveries. Every write is safe to repeat; writes of several deliveries share commits. */
export interface DeliveryStore {
  /** Returns pages in the order of the reads. Neither locks nor changes anything. */
  read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]>;
  /** Reads a page of a queue that is not read otherwise now. Most of it is not kept. */
  look(look: Omit<QueueRead, "bytesMax">): Promise<QueuePage>;
  /** The head of each queue of these shards: one index step each. */
  heads(shards: readonly number[]): Promise<readonly QueueHead[]>;
  /** For each delivery, in order, whether it must wait; undefined: it is no longer pending. */
  preceding(deliveries: readonly Delivery[]): Promise<readonly (Precedence | undefined)[]>;
  /** Records one attempt and its consequence. It never gives up while the database is unavailable. */
  record(outcome: DeliveryOutcome): Promise<Recorded>;
  postpone(deliveries: readonly Postponement[]): Promise<void>;
  /**
   * Parks deliveries of one partner whose schedule is over while their endpoint accepts nothing. No attempt is counted.
   *
   * @param reason the endpoint's last failure @returns how many were parked, less those that changed meanwhile
   */
  park(deliveries: readonly (DeliveryKey & Pick<Delivery, "attemptsBefore">)[], reason: FailureReason): Promise<number>;
}
