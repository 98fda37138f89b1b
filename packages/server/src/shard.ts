import type { PartnerId } from "./ids.ts";

/** Partners fall into this many shards, by the last byte of their id, which is random in a UUIDv7. */
export const shardCount = 256;

/** The home of a shard, from 0. Consecutive shards share a home. @param homes their number, which divides the shards */
export function homeOf(shard: number, homes: number): number {
  return Math.floor((shard * homes) / shardCount);
}

/** The shard of a partner: 0 to 255. The column `shard` contains the same. */
export function shardOf(partnerId: PartnerId): number {
  return Number.parseInt(partnerId.slice(-2), 16);
}
