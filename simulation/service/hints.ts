import type { Delivery, Hint } from "../../packages/server/src/delivery/store.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { World } from "../world.ts";
import type { WorkerThread } from "./worker-thread.ts";

const coalesceMs = 5;
/** A few are later than outcomes are remembered: the answer to their COMMIT was, or their thread stalled. */
const veryLateMs = 25_000;

function earlier(one: Hint, other: Hint): Hint {
  if (one.sinceMs === undefined) return one;
  return other.sinceMs === undefined || other.sinceMs < one.sinceMs ? other : one;
}

/** Hints to workers that something is due or has changed. Any of them may be lost, late, or duplicated. */
export class SimulatedHints {
  readonly #world: World;
  readonly #workers: ReadonlySet<WorkerThread>;
  #keys: Map<string, Hint> | undefined;
  lossChance = 0;
  lateChance = 0;

  constructor(world: World, workers: ReadonlySet<WorkerThread>) {
    this.#world = world;
    this.#workers = workers;
  }

  /** Rows with their content, to the worker of the same process. */
  rows(worker: WorkerThread, deliveries: readonly Delivery[], begunMs: number, onOffered: () => void): void {
    const { random } = this.#world;
    const lateMs = () => random.between(1, random.chance(0.2) ? veryLateMs : 400);
    const afterMs = this.#isLate() ? lateMs() : random.between(0.02, 0.5);
    this.#send(worker, afterMs, () => {
      worker.worker.offer(deliveries, begunMs);
      onOffered();
    });
  }

  /** By NOTIFY to all: at once coalesced for 5 ms. */
  keys(keys: readonly Hint[]): void {
    if (keys.length === 0) return;
    if (this.#keys === undefined) {
      this.#keys = new Map();
      this.#world.agenda.after(coalesceMs, () => this.#notify());
    }
    for (const key of keys) {
      const name = `${key.partnerId} ${key.queue}`;
      this.#keys.set(name, earlier(this.#keys.get(name) ?? key, key));
    }
  }

  partnerChanged(id: PartnerId): void {
    this.#all((worker) => worker.partners.changed(id));
  }

  circuitsChanged(): void {
    this.#all(({ worker }) => worker.circuitsChanged());
  }

  shardsGiven(): void {
    this.#all(({ worker }) => worker.tick());
  }

  #notify(): void {
    const keys = [...(this.#keys?.values() ?? [])];
    this.#keys = undefined;
    this.#all((worker) => worker.wake(keys));
  }

  #all(work: (worker: WorkerThread) => void): void {
    const { random } = this.#world;
    for (const worker of this.#workers) {
      const afterMs = this.#isLate() ? random.between(10, 5_000) : random.between(0.2, 2);
      this.#send(worker, afterMs, () => work(worker));
    }
  }

  #send(worker: WorkerThread, afterMs: number, work: () => void): void {
    const { random, agenda } = this.#world;
    if (this.lossChance > 0 && random.chance(this.lossChance)) return;
    agenda.after(afterMs, () => worker.thread.enter(work));
    if (this.#isLate()) agenda.after(afterMs + random.between(0, 300), () => worker.thread.enter(work));
  }

  #isLate(): boolean {
    return this.lateChance > 0 && this.#world.random.chance(this.lateChance);
  }
}
