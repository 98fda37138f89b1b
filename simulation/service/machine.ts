import type { World } from "../world.ts";
import type { Thread } from "./thread.ts";

const epochMs = 1_790_000_000_000;
export const usualDrift = 0.002;
/**
 * So large that a slow clock believes in a lease for 5.43 s, and a fast one counts the 6 s after which it deletes it in
 * 5.56 s. In such a world each clock is as wrong as that.
 */
export const largestDrift = 0.08;
/** The timers of a main thread are late by this share there: five beats that stand still are 6 s, in place of seven. */
const latenessMax = 0.205;

/** State shared by the threads of one process: its clocks, and whether it runs at all. */
export class SimulatedMachine {
  readonly #world: World;
  readonly threads = new Set<Thread>();
  /** Seconds of its clocks for each second of the world. */
  readonly pace: number;
  /** The share by which timers of its main thread are late. */
  readonly lateness: number;
  readonly #startedMs: number;
  #wallOffsetMs: number;
  #isFrozen = false;
  #suspendedAtMs: number | undefined;
  #suspendedMs = 0;

  constructor(world: World, drift: number) {
    this.#world = world;
    this.#startedMs = world.nowMs;
    const isLargest = drift === largestDrift;
    this.pace = isLargest ? world.random.pick([1 - drift, 1 + drift]) : world.random.between(1 - drift, 1 + drift);
    this.lateness = isLargest ? latenessMax : 0;
    this.#wallOffsetMs = world.random.between(-500, 500);
  }

  get isFrozen(): boolean {
    return this.#isFrozen;
  }

  /** It stops while the machine is suspended. */
  monotonicMs(): number {
    return ((this.#suspendedAtMs ?? this.#world.nowMs) - this.#suspendedMs) * this.pace;
  }

  wallMs(): number {
    const { nowMs } = this.#world;
    return epochMs + Math.floor(this.#startedMs + (nowMs - this.#startedMs) * this.pace + this.#wallOffsetMs);
  }

  /** Suspended and set back at once, a machine has no clock that tells how long it was away: no lease survives that. */
  get maySuspend(): boolean {
    return this.pace > 1;
  }

  stepWallClock(ms: number): void {
    this.#wallOffsetMs += this.maySuspend ? Math.abs(ms) : ms;
  }

  /** SIGSTOP: its clocks go on. */
  freeze(): void {
    this.#isFrozen = true;
  }

  /** As a laptop that is closed: the monotonic clock stops, the wall clock goes on. */
  suspend(): void {
    this.#isFrozen = true;
    this.#suspendedAtMs ??= this.#world.nowMs;
  }

  runOn(): void {
    if (this.#suspendedAtMs !== undefined) this.#suspendedMs += this.#world.nowMs - this.#suspendedAtMs;
    this.#suspendedAtMs = undefined;
    this.#isFrozen = false;
    for (const thread of this.threads) thread.runOn();
  }
}
