import type { LeaseId } from "../ids.ts";

/** `api`: a process that runs commands. `delivery`: a worker that sends notifications. */
export type LeaseKind = "api" | "delivery";

/** Where a holder keeps its lease. */
export interface LeaseStore {
  /** An id serves one lease only. Safe to repeat. */
  insert(id: LeaseId, kind: LeaseKind): Promise<void>;
  /** Raises the lease's beat. False: its row is gone, and the lease is dead. */
  beat(id: LeaseId): Promise<boolean>;
  /** Deletes the row: INITs under it are in doubt, shards under it are free. */
  remove(id: LeaseId): Promise<void>;
}

export interface LeaseBeat {
  readonly id: LeaseId;
  readonly beat: number;
}

/** What finding dead leases needs. */
export interface LeaseBeats {
  beats(): Promise<readonly LeaseBeat[]>;
  /** Deletes the leases that still stand at the given beat. @returns those that were deleted */
  removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]>;
}
