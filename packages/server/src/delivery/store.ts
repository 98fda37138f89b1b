import type { Clock } from "../clock.ts";
import type { LeaseId, NotificationId } from "../ids.ts";
import type { NextAttempt } from "./attempt/schedule.ts";
import type { Attempt, Delivery, FailureReason, QueueKey } from "./delivery.ts";
import type { CircuitChange } from "./limits/circuits.ts";

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
export type DeliveryKey = Pick<
  Delivery,
  "partnerId" | "id" | "round" | "attemptsMade" | "asked" | "requests" | "attemptsBefore"
>;

/** The key by which outcomes refer to a delivery. */
export function keyOf(delivery: Delivery): DeliveryKey {
  const { partnerId, id, round, attemptsMade, asked = 0, requests = 0, attemptsBefore } = delivery;
  return { partnerId, id, round, attemptsMade, asked, requests, attemptsBefore };
}

/**
 * The rest of a delay that a statement wrote, counted from when it was sent. Counted from the answer, which may arrive
 * much later, the delivery would be due long before it is read.
 */
export function leftMs(delayMs: number, sentMs: number, clock: Pick<Clock, "monotonicMs">): number {
  return Math.max(0, sentMs + delayMs - clock.monotonicMs());
}

/** Nothing was sent: due again after `delayMs`, or at once if a person asked for it since. No attempt is counted. */
export interface Postponement extends DeliveryKey {
  readonly delayMs: number;
}

/** The result of one attempt. Recording it is repeated until it is known to be stored, also after the lease is lost. */
export interface DeliveryOutcome extends DeliveryKey {
  readonly leaseId: LeaseId;
  readonly attempt: Attempt;
  readonly next: NextAttempt | { readonly kind: "accepted" };
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
  scan(read: Omit<QueueRead, "bytesMax">): Promise<QueuePage>;
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
  park(deliveries: readonly DeliveryKey[], reason: FailureReason): Promise<number>;
}
