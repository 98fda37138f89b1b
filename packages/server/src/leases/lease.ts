import type { Clock, Timers } from "../clock.ts";
import { type LeaseId, newId } from "../ids.ts";

/** The lease of a process: it keeps others off its rows and shards. */
export interface LeaseHolder {
  /** The current lease; undefined while it cannot be relied on. */
  current(): LeaseId | undefined;
  /** Milliseconds for which the lease is certainly held, by our own clocks; 0 if it is not. */
  remainingMs(): number;
}

export interface LeaseParts {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onTrouble: (error: unknown) => void;
}

export interface LeasePurpose {
  /** Asked at each beat; absent: `api`. */
  readonly kind?: () => LeaseKind;
  /** The lease was lost. Its rows and shards may belong to others by now. */
  readonly onLost?: () => void;
  /** Leases of dead holders were deleted. */
  readonly onReaped?: (ids: readonly LeaseId[]) => void;
}

const beatEveryMs = 1_000;
export const believedMs = 5_000;
/** Longer than a holder believes in its lease, so that nobody takes over from one that still acts. */
const deadAfterMs = believedMs + beatEveryMs;
/** The maximum time counted between two beats: changes in a longer gap were not seen. */
const gapMaxMs = 1_500;

/**
 * Holds one lease at a time. A beat every second increments a counter in its row. The holder believes in the lease for
 * 5 s, counted from before the last answered beat, on the monotonic and on the wall clock: a suspended machine stops
 * the first, a stepped clock may only shorten the second. If both stood still (a paused virtual machine), or the wall
 * clock was set back meanwhile, the next beat decides. A lease without a row is dead for good, and the holder begins
 * again under another id.
 *
 * ```
 * held ──(no beat answered for 5 s)──► silent ──(a beat is answered)──► held
 * held, silent ──(its row is gone)──► lost ──► held under a new id
 * ```
 *
 * The row, as the others see it:
 *
 * ```
 * alive ──(no beat for 6 s)──► dead: deleted, and its shards are free, its INITs in doubt
 * alive ──(a clean stop)──► deleted
 * ```
 */
export class Lease implements LeaseHolder {
  readonly #parts: LeaseParts;
  readonly #reaper: LeaseReaper;
  #purpose: LeasePurpose = {};
  #id: LeaseId | undefined;
  #untilMonotonicMs = 0;
  #untilWallMs = 0;
  #cancel: () => void = () => undefined;
  #beating: Promise<void> | undefined;
  #isStopped = false;

  constructor(parts: LeaseParts) {
    this.#parts = parts;
    this.#reaper = new LeaseReaper(parts.store, parts.clock);
  }

  /** Resolves when the lease is held; rejects if the first one cannot be acquired. */
  async start(purpose: LeasePurpose = {}): Promise<void> {
    this.#purpose = purpose;
    await this.#begin();
    if (this.#isStopped) return this.stop();
    // The answer has the beats of all leases: the sooner they are seen, the sooner a dead one is known.
    this.#schedule(0);
  }

  current(): LeaseId | undefined {
    return this.remainingMs() > 0 ? this.#id : undefined;
  }

  remainingMs(): number {
    if (this.#id === undefined) return 0;
    const { clock } = this.#parts;
    const leftMs = Math.min(this.#untilMonotonicMs - clock.monotonicMs(), this.#untilWallMs - clock.nowMs());
    return Math.max(0, Math.min(leftMs, believedMs));
  }

  /**
   * Whether this lease is held. Where it has run out, beats decide: the process may have stood still for longer than it
   * is believed in, and for less than the others wait.
   */
  async isHeld(id: LeaseId): Promise<boolean> {
    // The answer to a beat that is on its way is about a time before.
    for (let beats = 0; beats < 2 && !this.#isStopped && this.#id === id && this.remainingMs() === 0; beats += 1) {
      this.#cancel();
      await (this.#beating ?? this.#beatNow());
    }
    return this.current() === id;
  }

  /** The kind has changed: a beat tells the others now. */
  kindChanged(): void {
    if (this.#isStopped || this.#id === undefined || this.#beating !== undefined) return;
    this.#cancel();
    this.#schedule(0);
  }

  /** Releases the lease: its row is deleted, so that others take over at once. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#cancel();
    await this.#beating;
    const id = this.#id;
    this.#id = undefined;
    if (id !== undefined) await this.#parts.store.remove(id).catch(this.#parts.onTrouble);
  }

  /** One beat at a time, one per second: a slow beat is followed by the next one at once. */
  #schedule(afterMs = beatEveryMs): void {
    this.#cancel = this.#parts.timers.after(afterMs, () => void this.#beatNow());
  }

  #beatNow(): Promise<void> {
    const sentMs = this.#parts.clock.monotonicMs();
    this.#beating = this.#beat().finally(() => {
      this.#beating = undefined;
      const tookMs = this.#parts.clock.monotonicMs() - sentMs;
      if (!this.#isStopped) this.#schedule(Math.max(0, beatEveryMs - tookMs));
    });
    return this.#beating;
  }

  async #beat(): Promise<void> {
    try {
      if (this.#id === undefined) return await this.#begin();
      const sent = this.#readClocks();
      const beats = await this.#parts.store.beat(this.#id, this.#kind());
      if (beats !== undefined) {
        this.#believe(sent);
        return await this.#reap(beats, sent.monotonicMs);
      }
      this.#id = undefined;
      this.#purpose.onLost?.();
      if (!this.#isStopped) await this.#begin();
    } catch (error) {
      this.#reaper.unanswered();
      this.#parts.onTrouble(error);
    }
  }

  async #reap(beats: readonly LeaseBeat[], sentMs: number): Promise<void> {
    const reaped = await this.#reaper.answered(beats, sentMs);
    if (reaped.length > 0) this.#purpose.onReaped?.(reaped);
  }

  async #begin(): Promise<void> {
    const id = newId<"lease">(this.#parts.clock.nowMs());
    const sent = this.#readClocks();
    await this.#parts.store.insert(id, this.#kind());
    this.#id = id;
    this.#believe(sent);
  }

  #kind(): LeaseKind {
    return this.#purpose.kind?.() ?? "api";
  }

  #readClocks() {
    return { monotonicMs: this.#parts.clock.monotonicMs(), wallMs: this.#parts.clock.nowMs() };
  }

  #believe(sent: { readonly monotonicMs: number; readonly wallMs: number }): void {
    this.#untilMonotonicMs = sent.monotonicMs + believedMs;
    this.#untilWallMs = sent.wallMs + believedMs;
  }
}

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

/**
 * `delivery`: its process has a share of the shards. `api`: it has none, because it only runs commands, is stopping, or
 * cannot send now. INITs and shards name either kind.
 */
export type LeaseKind = "api" | "delivery";

export interface LeaseStore {
  /** An id serves one lease only. Safe to repeat. */
  insert(id: LeaseId, kind: LeaseKind): Promise<void>;
  /**
   * Increments the lease's beat, and sets its kind. @returns the beats of all leases just before it; undefined: its row
   * is gone, and the lease is dead
   */
  beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined>;
  /** Deletes the row: INITs under it are in doubt, shards under it are free. */
  remove(id: LeaseId): Promise<void>;
  /** Deletes leases that still have the given beat. @returns the deleted ones */
  removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]>;
}

export interface LeaseBeat {
  readonly id: LeaseId;
  readonly beat: number;
}
