import type { Clock } from "../clock.ts";
import type { LeaseId } from "../ids.ts";
import type { LeaseBeat, LeaseStore } from "./store.ts";

/** Longer than a holder believes in its lease without an answer: see `believedMs`. */
const deadAfterMs = 6_000;
/** The maximum time counted between two beats: changes in a longer gap were not seen. */
const gapMaxMs = 1_500;

interface Seen {
  readonly beat: number;
  /** The time for which the beat was seen unchanged, by our own monotonic clock. */
  unchangedMs: number;
}

/**
 * Deletes leases of dead holders: those whose beat was unchanged for 6 s, counted only while the beats of our own lease
 * were answered. So neither a step of the database's clock nor an outage of the database kills a living holder's lease.
 * The deletion is a compare-and-set on the beat.
 */
export class LeaseReaper {
  readonly #store: Pick<LeaseStore, "removeDead">;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #seen = new Map<LeaseId, Seen>();
  #answeredMs: number | undefined;

  constructor(store: Pick<LeaseStore, "removeDead">, clock: Pick<Clock, "monotonicMs">) {
    this.#store = store;
    this.#clock = clock;
  }

  /** The answer to a beat. @returns the leases that this reaper deleted */
  async answered(beats: readonly LeaseBeat[], sentMs: number): Promise<readonly LeaseId[]> {
    const gapMs = this.#answeredMs === undefined ? 0 : Math.min(sentMs - this.#answeredMs, gapMaxMs);
    this.#answeredMs = this.#clock.monotonicMs();
    const seen = new Map<LeaseId, Seen>();
    for (const { id, beat } of beats) {
      const before = this.#seen.get(id);
      seen.set(id, { beat, unchangedMs: before?.beat === beat ? before.unchangedMs + gapMs : 0 });
    }
    this.#seen = seen;
    const dead = [...seen].flatMap(([id, { beat, unchangedMs }]) => (unchangedMs >= deadAfterMs ? [{ id, beat }] : []));
    return dead.length === 0 ? [] : this.#store.removeDead(dead);
  }

  /** A beat was not answered: the time before it is not counted. */
  unanswered(): void {
    this.#answeredMs = undefined;
  }
}
