import type { QueuePosition } from "../../packages/server/src/delivery/store.ts";
import type { PartnerId } from "../../packages/server/src/ids.ts";
import type { SimulatedNotification } from "./notification.ts";

/** The pending rows of each queue, by (due_at, id). */
export class PendingIndex {
  readonly #queues = new Map<PartnerId, Map<string, SimulatedNotification[]>>();

  insert(one: SimulatedNotification): void {
    const queues = this.#queues.get(one.partnerId) ?? new Map<string, SimulatedNotification[]>();
    this.#queues.set(one.partnerId, queues);
    const rows = queues.get(one.queue) ?? [];
    queues.set(one.queue, rows);
    rows.splice(this.firstAfter(rows, one), 0, one);
  }

  remove(one: SimulatedNotification): void {
    const queues = this.#queues.get(one.partnerId);
    const rows = queues?.get(one.queue);
    if (queues === undefined || rows === undefined) return;
    const at = this.firstAfter(rows, one) - 1;
    if (rows[at] !== one) throw new RangeError(`${one.id} is not in its queue`);
    rows.splice(at, 1);
    if (rows.length === 0) queues.delete(one.queue);
  }

  queue(partnerId: PartnerId, queue: string): readonly SimulatedNotification[] {
    return this.#queues.get(partnerId)?.get(queue) ?? [];
  }

  queues(partnerId: PartnerId): ReadonlyMap<string, readonly SimulatedNotification[]> {
    return this.#queues.get(partnerId) ?? new Map();
  }

  /** The index of the first row that is due at this time or later. */
  firstDue(rows: readonly SimulatedNotification[], dueAtUs: number): number {
    return this.#first(rows, (row) => row.dueAtUs >= dueAtUs);
  }

  /** The index of the first row after a position. */
  firstAfter(rows: readonly SimulatedNotification[], { dueAtUs, id }: QueuePosition): number {
    return this.#first(rows, (row) => row.dueAtUs > dueAtUs || (row.dueAtUs === dueAtUs && row.id > id));
  }

  /** @param isBeyond true from one row on */
  #first(rows: readonly SimulatedNotification[], isBeyond: (row: SimulatedNotification) => boolean): number {
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      const row = rows[middle];
      if (row === undefined || isBeyond(row)) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
