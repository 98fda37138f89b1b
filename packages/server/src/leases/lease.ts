import type { Clock, Timers } from "../clock.ts";
import { type LeaseId, newId } from "../ids.ts";
import { LeaseReaper } from "./reaper.ts";
import type { LeaseBeat, LeaseKind, LeaseStore } from "./store.ts";

/** The lease of a process: it keeps others off its rows and shards. */
export interface LeaseHolder {
  /** The current lease; undefined while it cannot be relied on. */
  current(): LeaseId | undefined;
  /** Milliseconds for which the lease is certainly held, by our own clocks; 0 if it is not. */
  remainingMs(): number;
}

export interface LeaseParts {
  /** Asked at each beat. */
  readonly kind: () => LeaseKind;
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly onTrouble: (error: unknown) => void;
  /** The lease was lost. Its rows and shards may belong to others by now. */
  readonly onLost?: () => void;
  /** Leases of dead holders were deleted. */
  readonly onReaped?: (ids: readonly LeaseId[]) => void;
}

const beatEveryMs = 1_000;
/** Less than the time after which others declare the holder dead: see `deadAfterMs`. */
export const believedMs = 5_000;

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
 */
export class Lease implements LeaseHolder {
  readonly #parts: LeaseParts;
  readonly #reaper: LeaseReaper;
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
  async start(): Promise<void> {
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
    this.#cancel = this.#parts.timers.after(afterMs, () => {
      const sentMs = this.#parts.clock.monotonicMs();
      this.#beating = this.#beat().finally(() => {
        this.#beating = undefined;
        const tookMs = this.#parts.clock.monotonicMs() - sentMs;
        if (!this.#isStopped) this.#schedule(Math.max(0, beatEveryMs - tookMs));
      });
    });
  }

  async #beat(): Promise<void> {
    try {
      if (this.#id === undefined) return await this.#begin();
      const sent = this.#readClocks();
      const beats = await this.#parts.store.beat(this.#id, this.#parts.kind());
      if (beats !== undefined) {
        this.#believe(sent);
        return await this.#reap(beats, sent.monotonicMs);
      }
      this.#id = undefined;
      this.#parts.onLost?.();
      if (!this.#isStopped) await this.#begin();
    } catch (error) {
      this.#reaper.unanswered();
      this.#parts.onTrouble(error);
    }
  }

  async #reap(beats: readonly LeaseBeat[], sentMs: number): Promise<void> {
    const reaped = await this.#reaper.answered(beats, sentMs);
    if (reaped.length > 0) this.#parts.onReaped?.(reaped);
  }

  async #begin(): Promise<void> {
    const id = newId<"lease">(this.#parts.clock.nowMs());
    const sent = this.#readClocks();
    await this.#parts.store.insert(id, this.#parts.kind());
    this.#id = id;
    this.#believe(sent);
  }

  #readClocks() {
    return { monotonicMs: this.#parts.clock.monotonicMs(), wallMs: this.#parts.clock.nowMs() };
  }

  #believe(sent: { readonly monotonicMs: number; readonly wallMs: number }): void {
    this.#untilMonotonicMs = sent.monotonicMs + believedMs;
    this.#untilWallMs = sent.wallMs + believedMs;
  }
}
