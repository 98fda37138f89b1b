import type { LeaseId } from "../ids.ts";

/** `api`: a process that runs commands. `delivery`: a worker that sends notifications. */
export type LeaseKind = "api" | "delivery";

/** Stores the lease of a holder. */
export interface LeaseStore {
  /** An id serves one lease only. Safe to repeat. */
  insert(id: LeaseId, kind: LeaseKind): Promise<void>;
  /** Increments the lease's beat. False: its row is gone, and the lease is dead. */
  beat(id: LeaseId): Promise<boolean>;
  /** Deletes the row: INITs under it are in doubt, shards under it are free. */
  remove(id: LeaseId): Promise<void>;
}

export interface LeaseBeat {
  readonly id: LeaseId;
  readonly beat: number;
}

/** The reads and deletions of the reaper. */
export interface LeaseBeats {
  beats(): Promise<readonly LeaseBeat[]>;
  /** Deletes leases that still have the given beat. @returns the deleted ones */
  removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]>;
}
