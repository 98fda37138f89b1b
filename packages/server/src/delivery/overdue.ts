import type { Attempt, DeliveryStore, QueueKey, QueuePosition } from "./store.ts";

/** A queue whose endpoint accepts nothing. */
export interface BlockedQueue {
  /** The length of the partner's schedule, including the pauses. */
  readonly scheduleMs: number;
  /** The endpoint's last failure. */
  readonly reason: Attempt["reason"];
}

/**
 * Parks deliveries for an endpoint that accepts nothing once their schedule is over, some rows of each queue at a time.
 */
export class Overdue {
  readonly #store: Pick<DeliveryStore, "parkOverdue">;
  readonly #onParked: (parked: number) => void;
  /** The position from which each queue is scanned next. */
  #after = new Map<string, QueuePosition>();

  constructor(store: Pick<DeliveryStore, "parkOverdue">, onParked: (parked: number) => void) {
    this.#store = store;
    this.#onParked = onParked;
  }

  /** Scans each blocked queue once. A queue that is missing in one round is scanned from its head when it is back. */
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
