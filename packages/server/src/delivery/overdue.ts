import type { Queue } from "./queue.ts";
import type { Attempt, DeliveryStore, Position } from "./store.ts";

/** Parks what waits for an endpoint that takes nothing once its schedule is over, some rows of each queue at a time. */
export class Overdue {
  readonly #store: Pick<DeliveryStore, "parkOverdue">;
  readonly #onParked: (parked: number) => void;
  /** Where the next look at a queue goes on. */
  readonly #after = new Map<Queue, Position>();

  constructor(store: Pick<DeliveryStore, "parkOverdue">, onParked: (parked: number) => void) {
    this.#store = store;
    this.#onParked = onParked;
  }

  /**
   * @param scheduleMs how long the partner's schedule lasts
   * @param reason the endpoint's last failure
   */
  async look(queue: Queue, scheduleMs: number, reason: Attempt["reason"]): Promise<void> {
    const { parked, after } = await this.#store.parkOverdue({
      partnerId: queue.partnerId,
      queue: queue.name,
      after: this.#after.get(queue),
      scheduleMs,
      reason: reason ?? "timeout",
    });
    if (after === undefined) this.#after.delete(queue);
    else this.#after.set(queue, after);
    if (parked > 0) this.#onParked(parked);
  }

  forget(queue: Queue): void {
    this.#after.delete(queue);
  }
}
