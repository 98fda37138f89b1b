import type { Hints } from "../packages/server/src/delivery/hints.ts";
import type { DeliveryOutcome, DeliveryStore, Recorded } from "../packages/server/src/delivery/store.ts";
import type { LeaseHolder } from "../packages/server/src/leases/lease.ts";
import type { Checks } from "./checks/checks.ts";
import type { Line, SimulatedDatabase } from "./database/database.ts";
import { carryOut } from "./database/deliveries.ts";
import { SimulatedLeases, SimulatedShards } from "./database/shards.ts";
import type { Tables } from "./database/tables.ts";
import type { EventLoop } from "./service/event-loop.ts";
import type { Instance, SimulatedNotifications } from "./service/instance.ts";
import type { World } from "./world.ts";

/** The size of one simulated world. */
export interface SimulationPlan {
  readonly services: number;
  readonly merchants: number;
  readonly homes: number;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  readonly attemptTimeoutMs: number;
  /** Transactions a second, of all processes. */
  readonly load: number;
  /** The share by which clocks are too fast or too slow. */
  readonly drift: number;
}

/** The parts of a run, for each other. */
export interface SimulationContext {
  readonly world: World;
  readonly plan: SimulationPlan;
  readonly database: SimulatedDatabase;
  readonly tables: Tables;
  readonly notifications: SimulatedNotifications;
  readonly checks: Checks;
  readonly variation: Variation;
  /** The processes that live and have had a lease. */
  readonly instances: Set<Instance>;
  /** The ways to the homes, of all processes. */
  readonly homeLines: readonly Line[];
  readonly carryOut: (outcome: DeliveryOutcome) => Recorded;
  /** Whether faults are made now, and how many of a second's transactions are. */
  isStormy: boolean;
  loadFactor: number;
}

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
