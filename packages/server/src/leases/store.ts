import type { LeaseId } from "../ids.ts";

/**
 * `delivery`: its process has a share of the shards. `api`: it has none, because it only runs commands, is stopping, or
 * cannot send now. INITs and shards name either kind.
 */
export type LeaseKind = "api" | "delivery";

/** Stores the lease of a holder. */
export interface LeaseStore {
  /** An id serves one lease only. Safe to repeat. */
  insert(id: LeaseId, kind: LeaseKind): Promise<void>;
  /**
   * Increments the lease's beat, and sets its kind. @returns the beats of all leases just before it; undefined: its row
   * is gone, and the lease is dead
   */
  beat(id: LeaseId, kind: LeaseKind): Promise<readonly LeaseBeat[] | undefined>;
  /** Deletes the row: INITs under it are in doubt, shards under it are free. */
  remove(id: LeaseId): Promise<void>;
  /** Deletes leases that still have the given beat. @returns the deleted ones */
  removeDead(dead: readonly LeaseBeat[]): Promise<readonly LeaseId[]>;
}

export interface LeaseBeat {
  readonly id: LeaseId;
  readonly beat: number;
}
