import type { Attempt, DeliveryStore, QueueKey, QueuePosition } from "./store.ts";

/** Of a queue whose endpoint takes nothing. */
export interface BlockedQueue {
  /** How long the partner's schedule lasts, with the pauses in which it stood still. */
  readonly scheduleMs: number;
  /** The endpoint's last failure. */
  readonly reason: Attempt["reason"];
}

/** Parks what waits for an endpoint that takes nothing once its schedule is over, some rows of each queue at a time. */
export class Overdue {
  readonly #store: Pick<DeliveryStore, "parkOverdue">;
  readonly #onParked: (parked: number) => void;
  /** Where the next look at a queue goes on. */
  #after = new Map<string, QueuePosition>();

  constructor(store: Pick<DeliveryStore, "parkOverdue">, onParked: (parked: number) => void) {
    this.#store = store;
    this.#onParked = onParked;
  }

  /**
   * One look at each queue that is shut when its turn comes. A queue that is missing in one round is looked at from its
   * head when it comes again.
   */
  async parkDue(queues: readonly QueueKey[], shut: (key: QueueKey) => BlockedQueue | undefined): Promise<void> {
    const before = this.#after;
    this.#after = new Map();
    for (const { partnerId, queue } of queues) {
      const found = shut({ partnerId, queue });
      if (found === undefined) continue;
      const { scheduleMs, reason } = found;
      const name = `${partnerId} ${queue}`;
      const from = before.get(name);
      const looked = { partnerId, queue, after: from, scheduleMs, reason: reason ?? "timeout" };
      const { parked, after } = await this.#store.parkOverdue(looked);
      if (after !== undefined) this.#after.set(name, after);
      if (parked > 0) this.#onParked(parked);
    }
  }
}
