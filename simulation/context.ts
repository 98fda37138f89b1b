import type { DeliveryOutcome, Recorded } from "../packages/server/src/delivery/store.ts";
import type { Checks } from "./checks/checks.ts";
import type { SimulatedDatabase } from "./database/database.ts";
import type { Line } from "./database/line.ts";
import type { Tables } from "./database/tables.ts";
import type { Instance } from "./service/instance.ts";
import type { SimulatedNotifications } from "./service/notifications.ts";
import type { Variation } from "./variation.ts";
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
