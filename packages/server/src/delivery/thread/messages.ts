import type { LeaseId, PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { Attempted } from "../attempting.ts";
import type { Delivery, Hint, QueueKey } from "../store.ts";

/** What the main thread knows of a partner. */
export interface PartnerAnswer {
  readonly id: PartnerId;
  /** `same`: as it was told before. Undefined: there is none, or it cannot be read now. */
  readonly partner: Partner | "same" | undefined;
  /** When it was so, on the monotonic clock that all threads share. */
  readonly confirmedMs: number;
}

/** What one turn of the main thread's event loop has for a worker. */
export interface ToWorker {
  /** Just made durable. */
  readonly deliveries: readonly Delivery[];
  /** Before the first of them was written, by the monotonic clock that all threads share. */
  readonly begunMs: number;
  readonly hints: readonly Hint[];
  readonly partners: readonly PartnerAnswer[];
  /** Of `FromWorker`, attempts that were taken in: told for many at a time. */
  readonly noted: number;
  /** Somebody else says that something is to be looked at now. */
  readonly news: readonly ("shards" | "circuits" | "due")[];
  /** End, after what is on the wire, but no later than this. */
  readonly stopWithinMs?: number;
}

/** A worker's figures, each second. */
export interface WorkerStatus {
  /** Content in flight. */
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

/** What one turn of a worker's event loop has for the main thread. */
export interface FromWorker {
  /** Deliveries of `ToWorker` that were taken in: their credit is free again. */
  readonly taken: number;
  readonly takenBytes: number;
  /** Hints of `ToWorker` that were taken in. */
  readonly heard: number;
  /** Partners that it has to know of, and whether it has a snapshot of each. */
  readonly asks: readonly (readonly [PartnerId, boolean])[];
  /** Queues with more in the database than in memory, or no more. */
  readonly behind: readonly (readonly [QueueKey, boolean])[];
  readonly attempted: readonly (readonly [Omit<Delivery, "content">, Attempted])[];
  /** Commits of outcomes: rows, milliseconds, rows that wait. */
  readonly commits: readonly (readonly [number, number, number])[];
  readonly parkedOverdue: number;
  readonly log: readonly LogLine[];
  /** Shards that it sends for, when they have changed. */
  readonly shards?: readonly number[];
  /** The lease that it holds now, when it is another. */
  readonly leaseId?: LeaseId;
  readonly status?: WorkerStatus;
  /** POSTs in flight now. */
  readonly slots: number;
  /** It has stopped: attempts that were still under way. */
  readonly stopped?: number;
}

export interface LogLine {
  readonly level: "info" | "warn" | "error";
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}
