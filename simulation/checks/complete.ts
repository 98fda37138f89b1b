import type { Queue } from "../../packages/server/src/delivery/queue.ts";
import type { Hint, QueueRead } from "../../packages/server/src/delivery/store.ts";
import type { SimulatedDatabase } from "../database/database.ts";
import type { SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

interface Moment {
  readonly worldMs: number;
  readonly databaseUs: number;
}

/** A timer and a turn of the event loop. */
const settledMs = 20;

/** Invariant 11: a queue that calls itself complete has every row that it was notified of, or that a read could see. */
export class CompletenessCheck {
  readonly #world: World;
  readonly #tables: Tables;
  readonly #database: SimulatedDatabase;
  /** The last read from a queue's head, by worker, epoch and queue. */
  readonly #reads = new WeakMap<Instance, Map<string, Moment>>();

  constructor(world: World, tables: Tables, database: SimulatedDatabase) {
    this.#world = world;
    this.#tables = tables;
    this.#database = database;
  }

  readBegins(worker: Instance, reads: readonly QueueRead[]): void {
    const begun = this.#reads.get(worker) ?? new Map<string, Moment>();
    this.#reads.set(worker, begun);
    for (const { partnerId, queue, after } of reads) {
      const epoch = worker.worker.ownership.epochOf(partnerId);
      if (after === undefined && epoch !== undefined) {
        begun.set(`${epoch} ${partnerId} ${queue}`, { worldMs: this.#world.nowMs, databaseUs: this.#database.nowUs() });
      }
    }
  }

  told(worker: Instance, one: SimulatedNotification): void {
    const epoch = worker.worker.ownership.epochOf(one.partnerId);
    const isDue = one.dueAtUs <= this.#database.nowUs();
    if (epoch !== undefined && isDue) one.told = { worker: worker.name, epoch, atMs: this.#world.nowMs };
  }

  /** Only the rows of that time are looked at: a queue may have many thousands, and be named at every step. */
  woken(worker: Instance, { partnerId, queue = "", sinceMs = 0 }: Hint): void {
    const { pending } = this.#tables;
    const rows = pending.queue(partnerId, queue);
    const nowUs = this.#database.nowUs();
    for (let at = pending.firstDue(rows, sinceMs * 1_000); at < rows.length; at += 1) {
      const one = rows[at];
      if (one === undefined || one.dueAtUs > nowUs) break;
      this.told(worker, one);
    }
  }

  check(worker: Instance): void {
    const { queues, ownership } = worker.worker;
    for (const partnerId of queues.partners()) {
      const epoch = ownership.epochOf(partnerId);
      if (epoch === undefined) continue;
      for (const queue of queues.queuesOf(partnerId)) {
        if (!queue.hasMore && !queue.isReading) this.#checkQueue(worker, queue, epoch);
      }
    }
  }

  #checkQueue(worker: Instance, queue: Queue, epoch: number): void {
    const { partnerId, name, nextDueMs } = queue;
    // It is about to read.
    if (nextDueMs !== undefined && nextDueMs <= worker.loop.clock.monotonicMs()) return;
    const read = this.#reads.get(worker)?.get(`${epoch} ${partnerId} ${name}`);
    const { queues } = worker.worker;
    const isInHand = ({ id }: SimulatedNotification) =>
      queues.rests(id) || queues.queuesOf(partnerId).some((one) => one.has(id));
    for (const one of this.#tables.pending.queue(partnerId, name)) {
      if (one.dueAtUs > this.#database.nowUs() - settledMs * 1_000) break;
      if (isInHand(one) || one.changedMs > this.#world.nowMs - settledMs) continue;
      // A row that was due before the database's clock stepped back is due again later, and only the sweep finds it.
      const sinceMs = Math.max(one.changedMs, this.#database.steppedMs);
      const { told } = one;
      const isTold = told?.worker === worker.name && told.epoch === epoch && told.atMs >= sinceMs;
      const isRead = read !== undefined && read.worldMs >= sinceMs && read.databaseUs >= one.dueAtUs;
      if (!isTold && !isRead) continue;
      this.#world.violated(11, `${worker.name} holds ${partnerId} "${name}" for complete without ${one.id}`);
    }
  }
}
