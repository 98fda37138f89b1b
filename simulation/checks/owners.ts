import type { LeaseId } from "../../packages/server/src/ids.ts";
import type { ShardRow, Tables } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

/** Invariant 4: at most one believing owner for each shard. */
export function checkBelievers(world: World, tables: Tables, workers: Iterable<Instance>): void {
  for (const { id, shard } of tables.merchants) {
    const believers = [...workers].filter(({ worker }) => worker.ownership.epochOf(id) !== undefined);
    if (believers.length <= 1) continue;
    world.violated(4, `shard ${shard} is believed to be theirs by ${believers.map(({ name }) => name).join(" and ")}`);
  }
}

/** After one worker releases a shard, another claims it within this time, also if it was not told. */
const handedOverMs = 2_500;

/** Invariant 12, its first part: every shard is a living worker's. @param broken the lease of one that cannot work */
export function checkAllOwned(world: World, tables: Tables, broken?: LeaseId): void {
  const isFree = ({ leaseId, changedMs }: ShardRow) =>
    leaseId === broken || (leaseId === null && world.nowMs - changedMs > handedOverMs);
  const free = tables.shards.filter(isFree);
  if (free.length > 0) world.violated(12, `${free.length} shards are nobody's: ${free[0]?.shard} among them`);
}

/** Invariant 12, its second part: no worker is below its share, rounded down. */
export function checkEvenlyOwned(world: World, tables: Tables): void {
  const workers = [...tables.leases.values()].filter(({ kind }) => kind === "delivery");
  const floor = Math.floor(tables.shards.length / workers.length);
  for (const { id } of workers) {
    const owned = tables.shardsOf(id).length;
    if (owned < floor) world.violated(12, `${id} owns ${owned} shards, and its share is ${floor}`);
  }
}
