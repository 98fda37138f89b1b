import type { World } from "../world.ts";
import type { Thread } from "./thread.ts";

const epochMs = 1_790_000_000_000;

/** State shared by the threads of one process: its clocks, and whether it runs at all. */
export class SimulatedMachine {
  readonly #world: World;
  readonly threads = new Set<Thread>();
  /** Seconds of its clocks for each second of the world. */
  readonly pace: number;
  #wallOffsetMs: number;
  #isFrozen = false;
  #suspendedAtMs: number | undefined;
  #suspendedMs = 0;

  constructor(world: World) {
    this.#world = world;
    this.pace = world.random.between(0.998, 1.002);
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
    return epochMs + Math.floor(this.#world.nowMs + this.#wallOffsetMs);
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
