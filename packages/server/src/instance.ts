import type { InstanceId } from "./ids.ts";

/** One running service process, as the rows name it that belong to it: a row is its own only under the epoch it was taken in. */
export interface Instance {
  readonly id: InstanceId;
  readonly epoch: number;
}

/** What this process may rely on: the lease that keeps other instances off its rows. */
export interface Lease {
  /** The instance under which rows are taken now; undefined while the lease cannot be relied on. */
  current(): Instance | undefined;
  /** Milliseconds for which the lease certainly stands, by this process's own monotonic clock; 0 when it is over. */
  remainingMs(): number;
}
