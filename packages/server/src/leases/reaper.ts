import type { Clock, Timers } from "../clock.ts";
import type { LeaseId } from "../ids.ts";
import type { LeaseBeats } from "./store.ts";

export interface ReaperParts {
  readonly store: LeaseBeats;
  readonly clock: Pick<Clock, "monotonicMs">;
  readonly timers: Timers;
  /** Called with the leases that this reaper deleted. */
  readonly onReaped: (ids: readonly LeaseId[]) => void;
  readonly onTrouble: (error: unknown) => void;
}

/** Longer than a holder believes in its lease without an answer: see `believedMs`. */
const deadAfterMs = 6_000;
const lookEveryMs = 1_000;
/** The maximum time counted between two reads: changes in a longer gap were not seen. */
const gapMaxMs = 1_500;

interface Seen {
  readonly beat: number;
  /** The time for which the beat was seen unchanged, by our own monotonic clock. */
  unchangedMs: number;
}

/**
 * Deletes leases of dead holders: those whose beat was unchanged for 6 s, counted only while our own reads were
 * answered. So neither a step of the database's clock nor an outage of the database kills a living holder's lease. The
 * deletion is a compare-and-set on the beat.
 */
export class LeaseReaper {
  readonly #parts: ReaperParts;
  #seen = new Map<LeaseId, Seen>();
  #readAtMs: number | undefined;
  #cancel: () => void = () => undefined;
  #reading: Promise<void> | undefined;
  #isStopped = false;

  constructor(parts: ReaperParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#cancel = this.#parts.timers.after(lookEveryMs, () => {
      this.#reading = this.#read()
        .catch((error: unknown) => {
          // The time before a failed read is not counted.
          this.#readAtMs = undefined;
          this.#parts.onTrouble(error);
        })
        .finally(() => {
          this.#reading = undefined;
          if (!this.#isStopped) this.start();
        });
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#reading;
  }

  async #read(): Promise<void> {
    const { store, clock, onReaped } = this.#parts;
    const sentMs = clock.monotonicMs();
    const beats = await store.beats();
    const gapMs = this.#readAtMs === undefined ? 0 : Math.min(sentMs - this.#readAtMs, gapMaxMs);
    this.#readAtMs = clock.monotonicMs();
    const seen = new Map<LeaseId, Seen>();
    for (const { id, beat } of beats) {
      const before = this.#seen.get(id);
      seen.set(id, { beat, unchangedMs: before?.beat === beat ? before.unchangedMs + gapMs : 0 });
    }
    this.#seen = seen;
    const dead = [...seen].flatMap(([id, { beat, unchangedMs }]) => (unchangedMs >= deadAfterMs ? [{ id, beat }] : []));
    if (dead.length === 0) return;
    const reaped = await store.removeDead(dead);
    if (reaped.length > 0) onReaped(reaped);
  }
}
