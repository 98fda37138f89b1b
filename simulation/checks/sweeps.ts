import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

/** A sweep of a slow database takes seconds, and rests for ten seconds at most. */
const sweptWithinMs = 25_000;

/** Invariant 15: every shard that a worker owns is swept. */
export class SweepsCheck {
  readonly #world: World;
  /** When each shard was swept last, or first seen, by worker. */
  readonly #swept = new WeakMap<Instance, Map<number, number>>();

  constructor(world: World) {
    this.#world = world;
  }

  swept(worker: Instance, shards: readonly number[]): void {
    const swept = this.#sweptBy(worker);
    for (const shard of shards) swept.set(shard, this.#world.nowMs);
  }

  /** Called each second of a calm phase, after its first 20 s. */
  check(worker: Instance): void {
    const swept = this.#sweptBy(worker);
    const ready = new Set(worker.worker.ownership.ready);
    for (const shard of swept.keys()) if (!ready.has(shard)) swept.delete(shard);
    for (const shard of ready) {
      const sinceMs = swept.get(shard) ?? this.#world.nowMs;
      swept.set(shard, sinceMs);
      if (this.#world.nowMs - sinceMs <= sweptWithinMs) continue;
      this.#world.violated(15, `${worker.name} has not swept its shard ${shard} for ${sweptWithinMs} ms`);
    }
  }

  #sweptBy(worker: Instance): Map<number, number> {
    const swept = this.#swept.get(worker) ?? new Map<number, number>();
    this.#swept.set(worker, swept);
    return swept;
  }
}
