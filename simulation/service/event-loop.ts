import type { Clock, Timers } from "../../packages/server/src/clock.ts";
import type { World } from "../world.ts";

const epochMs = 1_790_000_000_000;
export const usualDrift = 0.002;
/**
 * So large that a slow clock believes in a lease for 5.43 s, and a fast one counts the 6 s after which it deletes it in
 * 5.56 s. In such a world each clock is as wrong as that.
 */
export const largestDrift = 0.08;
/** Timers are late by this share there: five beats that stand still are 6 s, in place of seven. */
const latenessMax = 0.205;
/** Longer ones are no later than that. */
const latenessOfMs = 1_000;

/**
 * The event loop of one process, with the clocks of its machine. Nothing runs in it while it is stalled, frozen
 * (SIGSTOP) or suspended, and nothing any more once it has ended.
 */
export class EventLoop {
  readonly name: string;
  readonly #world: World;
  /** Seconds of its clocks for each second of the world. */
  readonly pace: number;
  /** The share by which its timers are late. */
  readonly #lateness: number;
  readonly #startedMs: number;
  #wallOffsetMs: number;
  isAlive = true;
  #isStalled = false;
  #isFrozen = false;
  #suspendedAtMs: number | undefined;
  #suspendedMs = 0;
  #backlog: (() => void)[] = [];

  constructor(world: World, name: string, drift: number) {
    this.#world = world;
    this.name = name;
    this.#startedMs = world.nowMs;
    const isLargest = drift === largestDrift;
    this.pace = isLargest ? world.random.pick([1 - drift, 1 + drift]) : world.random.between(1 - drift, 1 + drift);
    this.#lateness = isLargest ? latenessMax : 0;
    this.#wallOffsetMs = world.random.between(-500, 500);
  }

  /** It takes no events now. */
  get standsStill(): boolean {
    return this.#isStalled || this.#isFrozen;
  }

  readonly clock: Clock = {
    nowMs: () => {
      const { nowMs } = this.#world;
      return epochMs + Math.floor(this.#startedMs + (nowMs - this.#startedMs) * this.pace + this.#wallOffsetMs);
    },
    // It stops while the machine is suspended.
    monotonicMs: () => ((this.#suspendedAtMs ?? this.#world.nowMs) - this.#suspendedMs) * this.pace,
  };

  readonly timers: Timers = {
    after: (ms, work) => {
      if (!(ms < 2 ** 31)) this.#world.violated(0, `a timer of ${ms} ms`);
      // As setTimeout has it: not less than 1 ms, and rarely on time.
      const lateMs = Math.min(ms, latenessOfMs) * this.#lateness;
      const afterMs = Math.max(1, ms) + lateMs + this.#world.random.next() * 0.2;
      return this.#wakeAt(this.clock.monotonicMs() + afterMs, work);
    },
  };

  /** Something arrived for it: a timer, an answer, a notification. */
  enter(work: () => void): void {
    if (!this.isAlive) return;
    if (this.standsStill) this.#backlog.push(work);
    else work();
  }

  stall(): void {
    this.#isStalled = true;
  }

  /** SIGSTOP: its clocks go on. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** Suspended and set back at once, a machine has no clock that tells how long it was away: no lease survives that. */
  get maySuspend(): boolean {
    return this.pace > 1;
  }

  /** As a laptop that is closed: the monotonic clock stops, the wall clock goes on. */
  suspend(): void {
    this.#isFrozen = true;
    this.#suspendedAtMs ??= this.#world.nowMs;
  }

  stepWallClock(ms: number): void {
    this.#wallOffsetMs += this.maySuspend ? Math.abs(ms) : ms;
  }

  /** It runs on: each event that came meanwhile has a turn of its own. */
  runOn(): void {
    if (this.#suspendedAtMs !== undefined) this.#suspendedMs += this.#world.nowMs - this.#suspendedAtMs;
    this.#suspendedAtMs = undefined;
    this.#isFrozen = false;
    this.#isStalled = false;
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const work of backlog) this.#world.agenda.after(0, () => this.enter(work));
  }

  end(): void {
    this.isAlive = false;
    this.#backlog = [];
  }

  #wakeAt(dueMs: number, work: () => void): () => void {
    const { agenda } = this.#world;
    const { monotonicMs } = this.clock;
    let isCancelled = false;
    const fire = () => {
      if (isCancelled || !this.isAlive) return;
      const leftMs = dueMs - monotonicMs();
      // The machine was suspended meanwhile, and its monotonic clock with it.
      if (leftMs > 0.001) planned = agenda.after(leftMs / this.pace, () => this.enter(fire));
      else work();
    };
    let planned = agenda.after((dueMs - monotonicMs()) / this.pace, () => this.enter(fire));
    return () => {
      isCancelled = true;
      planned.run = undefined;
    };
  }
}
