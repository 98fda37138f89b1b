import { shardOf } from "../ids.ts";
import type { Delivery } from "./delivery.ts";
import type { Precedence, QueueHead, QueuePage, QueueRead } from "./store.ts";

/** A clock that advances on request. */
export class Time {
  ms = 1_000;
  #timers: { readonly atMs: number; readonly work: () => void }[] = [];

  readonly clock = { nowMs: () => this.ms, monotonicMs: () => this.ms };

  readonly timers = {
    after: (ms: number, work: () => void) => {
      const timer = { atMs: this.ms + ms, work };
      this.#timers.push(timer);
      return () => void this.#timers.splice(this.#timers.indexOf(timer) >>> 0, 1);
    },
  };

  /** Timers that have not fired. */
  get waiting(): number {
    return this.#timers.length;
  }

  /** Runs everything that becomes due within `ms`, in order, with its consequences. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.ms + ms;
    for (let steps = 0; steps < 5_000; steps += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#timers.toSorted((one, another) => one.atMs - another.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers.splice(this.#timers.indexOf(next), 1);
      this.ms = Math.max(this.ms, next.atMs);
      next.work();
    }
    this.ms = untilMs;
  }
}

/** The pending rows, all of them due. */
export class Pending {
  rows: Delivery[] = [];
  reads: QueueRead[] = [];
  scans: Omit<QueueRead, "bytesMax">[] = [];
  /** The time for which they have been due. */
  dueForMs = 10_000;
  /** Runs while a statement reads. */
  whileReading: () => Promise<void> = async () => undefined;

  async read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]> {
    this.reads.push(...reads);
    const pages = reads.map((read) => this.#page(read));
    await this.whileReading();
    return pages;
  }

  async scan(read: Omit<QueueRead, "bytesMax">): Promise<QueuePage> {
    this.scans.push(read);
    return this.#page(read);
  }

  async preceding(deliveries: readonly Delivery[]): Promise<readonly Precedence[]> {
    return deliveries.map(() => ({ after: undefined, ageMs: 0 }));
  }

  async postpone(): Promise<void> {
    return undefined;
  }

  async heads(shards: readonly number[]): Promise<readonly QueueHead[]> {
    const firsts = new Map(this.rows.toReversed().map((row) => [`${row.partnerId} ${row.queue}`, row]));
    return [...firsts.values()]
      .filter((row) => shards.includes(shardOf(row.partnerId)))
      .map((row) => ({ ...headOf(row), dueInMs: -this.dueForMs }));
  }

  #page({ partnerId: of, queue, after, rowsMax }: Omit<QueueRead, "bytesMax">): QueuePage {
    const rows = this.rows.filter((row) => row.partnerId === of && row.queue === queue);
    const rest = rows.filter(({ id }) => after === undefined || id > after.id);
    const due = rest.slice(0, rowsMax).map((delivery) => ({ dueAtUs: 1, id: delivery.id, delivery }));
    return { due, hasMore: rest.length > rowsMax, nextInMs: undefined };
  }
}

function headOf({ partnerId: of, queue, id, round, attemptsMade }: Delivery) {
  return { partnerId: of, queue, id, round, attemptsMade };
}
