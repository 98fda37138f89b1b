import type { Clock, Timers } from "../../packages/server/src/clock.ts";
import type { World } from "../world.ts";
import type { SimulatedMachine } from "./machine.ts";

/** A thread of a process: nothing runs in it while it is stalled, and nothing any more once it has ended. */
export class Thread {
  readonly name: string;
  readonly machine: SimulatedMachine;
  readonly #world: World;
  #isAlive = true;
  #isStalled = false;
  readonly #lateness: number;
  #backlog: (() => void)[] = [];

  /** @param lateness the share by which its timers are late */
  constructor(world: World, machine: SimulatedMachine, name: string, lateness = 0) {
    this.#world = world;
    this.#lateness = lateness;
    this.machine = machine;
    this.name = name;
    machine.threads.add(this);
  }

  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Its event loop takes no events now. */
  get standsStill(): boolean {
    return this.#isStalled || this.machine.isFrozen;
  }

  readonly clock: Clock = {
    nowMs: () => this.machine.wallMs(),
    monotonicMs: () => this.machine.monotonicMs(),
  };

  readonly timers: Timers = {
    after: (ms, work) => {
      if (!(ms < 2 ** 31)) this.#world.violated(0, `a timer of ${ms} ms`);
      // As setTimeout has it: not less than 1 ms, and rarely on time.
      const afterMs = Math.max(1, ms) * (1 + this.#lateness) + this.#world.random.next() * 0.2;
      const dueMs = this.machine.monotonicMs() + afterMs;
      return this.#wakeAt(dueMs, work);
    },
  };

  /** Something arrived for it: a timer, an answer, a message. */
  enter(work: () => void): void {
    if (!this.#isAlive) return;
    if (this.standsStill) this.#backlog.push(work);
    else work();
  }

  stall(): void {
    this.#isStalled = true;
  }

  /** It runs on: each event that came meanwhile has a turn of its own. */
  runOn(): void {
    this.#isStalled = false;
    if (this.machine.isFrozen) return;
    const backlog = this.#backlog;
    this.#backlog = [];
    for (const work of backlog) this.#world.agenda.after(0, () => this.enter(work));
  }

  end(): void {
    this.#isAlive = false;
    this.#backlog = [];
    this.machine.threads.delete(this);
  }

  #wakeAt(dueMs: number, work: () => void): () => void {
    const { agenda } = this.#world;
    let isCancelled = false;
    const fire = () => {
      if (isCancelled || !this.#isAlive) return;
      const leftMs = dueMs - this.machine.monotonicMs();
      // The machine was suspended meanwhile, and its monotonic clock with it.
      if (leftMs > 0.001) planned = agenda.after(leftMs / this.machine.pace, () => this.enter(fire));
      else work();
    };
    let planned = agenda.after((dueMs - this.machine.monotonicMs()) / this.machine.pace, () => this.enter(fire));
    return () => {
      isCancelled = true;
      planned.run = undefined;
    };
  }
}
