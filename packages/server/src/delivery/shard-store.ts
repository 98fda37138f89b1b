import type { LeaseId } from "../ids.ts";

export interface OwnedShard {
  readonly shard: number;
  /** Rises with every change of the owner. */
  readonly epoch: number;
}

export interface WorkerShare {
  readonly leaseId: LeaseId;
  /** Since it began, by the database's clock. */
  readonly ageMs: number;
  readonly owned: number;
}

export interface ShardMap {
  /** Living delivery workers, by their leases. */
  readonly workers: readonly WorkerShare[];
  /** What the asking lease owns. */
  readonly mine: readonly OwnedShard[];
  readonly free: number;
}

/** Who owns which shard. */
export interface ShardStore {
  map(leaseId: LeaseId): Promise<ShardMap>;
  /** Takes up to `count` free shards: compare-and-set, never from a living owner. Rejects for a lease that is gone. */
  claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]>;
  /** Gives shards up, where they are still the lease's own under their epoch, and tells the others. */
  release(leaseId: LeaseId, shards: readonly OwnedShard[]): Promise<void>;
}
