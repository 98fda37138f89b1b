import type { Hints } from "../packages/server/src/delivery/hints.ts";
import type { DeliveryStore } from "../packages/server/src/delivery/store.ts";
import type { LeaseHolder } from "../packages/server/src/leases/lease.ts";
import { carryOut } from "./database/deliveries.ts";
import { SimulatedLeases } from "./database/leases.ts";
import { SimulatedShards } from "./database/shards.ts";
import type { EventLoop } from "./service/event-loop.ts";
import type { Instance } from "./service/instance.ts";

/** Parts of a run that a mutant puts something wrong in the place of. */
export interface Variation {
  readonly Leases: typeof SimulatedLeases;
  readonly Shards: typeof SimulatedShards;
  readonly deliveries: (store: DeliveryStore) => DeliveryStore;
  readonly holder: (lease: LeaseHolder, loop: EventLoop) => LeaseHolder;
  readonly carryOut: typeof carryOut;
  /** Takes the notifications of producers. */
  readonly notifier: (instance: Instance) => Pick<Hints, "offer">;
  /**
   * `crashes`: nothing else, so that shards change hands all the time. `leases`: one
   * worker, whose leases another process deletes, so that it claims the same shards again.
   */
  readonly faults: "all" | "crashes" | "leases";
}

/** The code without a mutation. */
export const faithful: Variation = {
  Leases: SimulatedLeases,
  Shards: SimulatedShards,
  deliveries: (store) => store,
  holder: (lease) => lease,
  carryOut,
  notifier: ({ hints }) => hints,
  faults: "all",
};
