import type { NotificationId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";

/**
 * A delivery in memory. `following`: whether it must wait for an earlier one is not known yet. `taken`: it is sent,
 * recorded, or postponed.
 */
export interface Entry<Queue> {
  readonly delivery: Delivery;
  readonly queue: Queue;
  /** Its due time when it was read or offered, in milliseconds since 1970 by the database's clock. */
  readonly dueMs: number;
  state: "following" | "ready" | "taken";
  /** A read showed it with a later round, attempt or due time, committed before the answer of its outcome arrived. */
  isOutdated: boolean;
}

/** All deliveries in the memory of a worker. Each is in one queue, and only that one adds and removes it. */
export class Memory<Queue> {
  readonly #entries = new Map<NotificationId, Entry<Queue>>();
  #bytes = 0;

  get rows(): number {
    return this.#entries.size;
  }

  /** The size of their content. */
  get bytes(): number {
    return this.#bytes;
  }

  find(id: NotificationId): Entry<Queue> | undefined {
    return this.#entries.get(id);
  }

  /** Undefined if another round or reading of it is in memory. */
  findExact(delivery: Delivery): Entry<Queue> | undefined {
    const entry = this.#entries.get(delivery.id);
    return entry?.delivery === delivery ? entry : undefined;
  }

  add(entry: Entry<Queue>): void {
    this.#entries.set(entry.delivery.id, entry);
    this.#bytes += entry.delivery.bytes;
  }

  remove({ delivery: { id, bytes } }: Entry<Queue>): void {
    this.#entries.delete(id);
    this.#bytes -= bytes;
  }
}

type AttemptKey = Pick<Delivery, "id" | "round" | "attemptsMade">;

/** The maximum number of attempts in a round, for encoding both in one number. */
const attemptsMax = 1_000_000;

/** Increases with the attempts and rounds of one delivery. */
export function attemptNumber({ round, attemptsMade }: Omit<AttemptKey, "id">): number {
  return round * attemptsMax + attemptsMade;
}

/**
 * The last attempt of each delivery whose outcome was recorded recently: an older read or hint shows a delivery that is
 * over. It is remembered for one to two periods; rotating two maps costs less than expiring each entry.
 */
export class RecentOutcomes {
  readonly #periodMs: number;
  #latest = new Map<NotificationId, number>();
  #earlier: ReadonlyMap<NotificationId, number> = new Map();
  #sinceMs = Number.NEGATIVE_INFINITY;

  /** @param periodMs the minimum time for which an outcome is remembered */
  constructor(periodMs: number) {
    this.#periodMs = periodMs;
  }

  add(attempt: AttemptKey): void {
    this.#latest.set(attempt.id, attemptNumber(attempt));
  }

  /** Whether the outcome of this attempt, or of a later one, was recorded recently. */
  knows(attempt: AttemptKey): boolean {
    const last = this.#latest.get(attempt.id) ?? this.#earlier.get(attempt.id);
    return last !== undefined && last >= attemptNumber(attempt);
  }

  /** Forgets outcomes older than a period, and than `neededSinceMs`. */
  forget(nowMs: number, neededSinceMs: number): void {
    if (nowMs - this.#sinceMs < this.#periodMs || neededSinceMs < this.#sinceMs) return;
    this.#earlier = this.#latest;
    this.#latest = new Map();
    this.#sinceMs = nowMs;
  }
}
