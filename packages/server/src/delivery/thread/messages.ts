import type { LeaseId, PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { AttemptResult } from "../attempt.ts";
import type { Delivery, Hint, QueueKey } from "../store.ts";

/** The main thread's answer about a partner. */
export interface PartnerAnswer {
  readonly id: PartnerId;
  /** `same`: unchanged since the last answer. Undefined: it does not exist, or cannot be read now. */
  readonly partner: Partner | "same" | undefined;
  /** When this was confirmed, by the monotonic clock that all threads share. */
  readonly confirmedMs: number;
}

/** The message of one turn of the main thread's event loop to a worker. */
export interface ToWorker {
  /** Deliveries that were just made durable. */
  readonly deliveries: readonly Delivery[];
  /** Before the first of them was written, by the monotonic clock that all threads share. */
  readonly begunMs: number;
  readonly hints: readonly Hint[];
  readonly partners: readonly PartnerAnswer[];
  /** Acknowledged attempts of `FromWorker`: sent for many at a time. */
  readonly noted: number;
  /** Another part requests a look at these now. */
  readonly news: readonly ("shards" | "circuits" | "due")[];
  /** Stop after the attempts on the wire, but no later than this. */
  readonly stopWithinMs?: number;
}

/** A worker's figures, each second. */
export interface WorkerStatus {
  /** The size of content in flight. */
  readonly bytes: number;
  /** Deliveries in memory. */
  readonly rows: number;
  /** Outcomes that are not durable yet. */
  readonly unrecorded: number;
  readonly leaseMs: number;
  /** Milliseconds for which its thread was busy since it began. */
  readonly busyMs: number;
  readonly sealingWaiting: number;
}

/** The part of a delivery that is reported with its attempt. Each key costs both threads time. */
export type AttemptedDelivery = Pick<
  Delivery,
  "partnerId" | "id" | "transactionId" | "command" | "attemptsBefore" | "attemptsMade" | "scheduleStartMs"
>;

/** The message of one turn of a worker's event loop to the main thread. */
export interface FromWorker {
  /** Acknowledged deliveries of `ToWorker`: their credit is free again. */
  readonly taken: number;
  readonly takenBytes: number;
  /** Acknowledged hints of `ToWorker`. */
  readonly heard: number;
  /** Partners that it needs, and whether it has a snapshot of each. */
  readonly asks: readonly (readonly [PartnerId, boolean])[];
  /** Queues that have more in the database than in memory, or no longer have. */
  readonly behind: readonly (readonly [QueueKey, boolean])[];
  readonly attempted: readonly (readonly [AttemptedDelivery, AttemptResult])[];
  /** Commits of outcomes: rows, milliseconds, rows that wait. */
  readonly commits: readonly (readonly [number, number, number])[];
  readonly parkedOverdue: number;
  readonly log: readonly LogLine[];
  /** The shards that it sends for, if they have changed. */
  readonly shards?: readonly number[];
  /** Its current lease, if it has changed. */
  readonly leaseId?: LeaseId;
  readonly status?: WorkerStatus;
  /** POSTs in flight now. */
  readonly slots: number;
  /** It has stopped: the number of attempts that were still running. */
  readonly stopped?: number;
}

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}
