import type { LeaseId } from "../ids.ts";

export interface OwnedShard {
  readonly shard: number;
  /** Increases with every change of the owner. */
  readonly epoch: number;
}

export interface WorkerShare {
  readonly leaseId: LeaseId;
  /** Its age by the database's clock. */
  readonly ageMs: number;
  readonly owned: number;
}

export interface ShardMap {
  /** Living delivery workers, by their leases. */
  readonly workers: readonly WorkerShare[];
  /** The shards that the asking lease owns. */
  readonly mine: readonly OwnedShard[];
  readonly free: number;
}

/** The owners of shards. */
export interface ShardStore {
  map(leaseId: LeaseId): Promise<ShardMap>;
  /** Claims up to `count` free shards by compare-and-set, never from a living owner. Rejects if the lease is gone. */
  claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]>;
  /** Releases shards that the lease still owns under their epoch, and notifies the others. */
  release(leaseId: LeaseId, shards: readonly OwnedShard[]): Promise<void>;
}
