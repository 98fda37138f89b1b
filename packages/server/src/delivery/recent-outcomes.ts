import type { NotificationId } from "../ids.ts";
import type { Delivery } from "./delivery.ts";

type AttemptKey = Pick<Delivery, "id" | "round" | "attemptsMade">;

/** The maximum number of attempts in a round, for encoding both in one number. */
const attemptsMax = 1_000_000;

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

  add({ id, round, attemptsMade }: AttemptKey): void {
    this.#latest.set(id, round * attemptsMax + attemptsMade);
  }

  /** Whether the outcome of this attempt, or of a later one, was recorded recently. */
  knows({ id, round, attemptsMade }: AttemptKey): boolean {
    const last = this.#latest.get(id) ?? this.#earlier.get(id);
    return last !== undefined && last >= round * attemptsMax + attemptsMade;
  }

  /** Forgets outcomes older than a period, and than `neededSinceMs`. */
  forget(nowMs: number, neededSinceMs: number): void {
    if (nowMs - this.#sinceMs < this.#periodMs || neededSinceMs < this.#sinceMs) return;
    this.#earlier = this.#latest;
    this.#latest = new Map();
    this.#sinceMs = nowMs;
  }
}
