import type { Clock, Timers } from "../clock.ts";
import { BlockedQueues, type BlockedQueuesParts } from "./blocked-queues.ts";
import { DeliveryOrder } from "./order.ts";
import type { Queues } from "./queues.ts";
import type { DeliveryStore } from "./store.ts";

export interface HomeWorkParts {
  readonly store: DeliveryStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly queues: Queues;
  readonly blocked: Pick<BlockedQueuesParts, "blocked" | "isBlocked" | "onParked">;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** A worker's work for the partners of one home. */
export class HomeWork {
  readonly order: DeliveryOrder;
  readonly blocked: BlockedQueues;
  isMaintaining = false;
  sweepNotBeforeMs = 0;
  recheckedMs = 0;
  scanNotBeforeMs = 0;

  constructor({ store, clock, timers, queues, blocked, onTrouble }: HomeWorkParts) {
    this.order = new DeliveryOrder({
      store,
      clock,
      timers,
      isInHand: (id) => queues.has(id),
      holds: (delivery) => queues.holds(delivery),
      onMayLeave: (delivery) => queues.mayLeave(delivery),
      onPostponed: (delivery, delayMs) => queues.release(delivery, delayMs),
      onGone: (delivery) => queues.release(delivery),
      onTrouble: (error) => onTrouble("the order of notifications could not be looked up", error),
    });
    this.blocked = new BlockedQueues({ ...blocked, store, queues, clock, onTrouble });
  }
}
