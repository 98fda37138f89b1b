import type { Clock, Timers } from "../clock.ts";
import { DeliveryOrder } from "./order.ts";
import type { Queue } from "./queue.ts";
import type { Queues } from "./queues.ts";
import { ShutQueues, type ShutQueuesParts } from "./shut-queues.ts";
import type { DeliveryStore } from "./store.ts";

export interface HomeWorkParts {
  readonly store: DeliveryStore;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly queues: Queues;
  readonly shut: Pick<ShutQueuesParts, "shut" | "isShut" | "onParked">;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** A worker's work for the partners of one home. */
export class HomeWork {
  readonly order: DeliveryOrder;
  readonly shut: ShutQueues;
  unrecorded = 0;
  /** Nothing of these is sent until some of its outcomes are recorded. */
  readonly held = new Set<Queue>();
  isMaintaining = false;
  sweepNotBeforeMs = 0;
  recheckedMs = 0;
  shutNotBeforeMs = 0;

  constructor({ store, clock, timers, queues, shut, onTrouble }: HomeWorkParts) {
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
    this.shut = new ShutQueues({ ...shut, store, queues, clock, onTrouble });
  }
}
