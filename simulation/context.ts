import type { Checks } from "./checks/checks.ts";
import type { Line, SimulatedDatabase } from "./database/database.ts";
import type { Tables } from "./database/tables.ts";
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

/**
 * `crashes`: nothing else, so that shards change hands all the time. `leases`: one worker, whose leases another process
 * deletes, so that it claims the same shards again.
 */
export type FaultsOf = "all" | "crashes" | "leases";

/** What the checks look at. */
export type Observed = Pick<SimulationContext, "world" | "plan" | "tables" | "database" | "instances">;

/** The parts of a run, for each other. */
export interface SimulationContext {
  readonly world: World;
  readonly plan: SimulationPlan;
  readonly database: SimulatedDatabase;
  readonly tables: Tables;
  readonly notifications: SimulatedNotifications;
  readonly checks: Checks;
  readonly faults: FaultsOf;
  /** The processes that live and have had a lease. */
  readonly instances: Set<Instance>;
  /** The ways to the homes, of all processes. */
  readonly homeLines: readonly Line[];
  /** Whether faults are made now, and how many of a second's transactions are. */
  isStormy: boolean;
  loadFactor: number;
}
