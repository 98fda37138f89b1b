import type { QueueRead } from "../../packages/server/src/delivery/store.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

const windowMs = 1_000;
const readsMax = 150;

/** No queue is read endlessly: a worker that reads without result is a busy loop. */
export class ReadsCheck {
  readonly #world: World;
  readonly #counts = new WeakMap<Instance, Map<string, { sinceMs: number; count: number }>>();

  constructor(world: World) {
    this.#world = world;
  }

  count(worker: Instance, { partnerId, queue, after }: QueueRead): void {
    if (after !== undefined) return;
    const counts = this.#counts.get(worker) ?? new Map<string, { sinceMs: number; count: number }>();
    this.#counts.set(worker, counts);
    const key = `${partnerId} ${queue}`;
    const counted = counts.get(key) ?? { sinceMs: this.#world.nowMs, count: 0 };
    counts.set(key, counted);
    if (this.#world.nowMs - counted.sinceMs >= windowMs)
      Object.assign(counted, { sinceMs: this.#world.nowMs, count: 0 });
    counted.count += 1;
    if (counted.count <= readsMax) return;
    this.#world.violated(
      13,
      `${worker.name} read the head of ${partnerId} "${queue}" ${readsMax} times in ${windowMs} ms`,
    );
  }

  /** An attempt of the partner begins: reading for it is worth while. */
  begins(worker: Instance, partnerId: string): void {
    for (const [key, counted] of this.#counts.get(worker) ?? []) if (key.startsWith(partnerId)) counted.count = 0;
  }
}
