import type { Client, Pool } from "pg";
import type { OwnedShard, ShardMap, ShardStore } from "../../delivery/worker/ownership.ts";
import { integerArray } from "../database/columns.ts";
import { prepared } from "../database/statement.ts";

const map = prepared<ShardMap>(`
  SELECT (SELECT coalesce(json_agg(w), '[]') FROM (
      SELECT l.id AS "leaseId", l.beat AS beats,
        (SELECT count(*) FROM shards s WHERE s.lease_id = l.id) AS owned
      FROM leases l WHERE l.kind = 'delivery') AS w) AS workers,
    (SELECT coalesce(json_agg(m), '[]') FROM (
      SELECT s.shard, s.epoch FROM shards s WHERE s.lease_id = $1) AS m) AS mine,
    (SELECT count(*) FROM shards s WHERE s.lease_id IS NULL) AS free`);

// The row's lock makes it a compare-and-set: after waiting for it, PostgreSQL checks again whether the shard is free.
// The foreign key refuses a deleted lease. Measured: NOT EXISTS (living lease) gave one shard to two owners, because
// the second check reads an old snapshot of the other table.
const claim = prepared<OwnedShard>(`
  WITH free AS (
    SELECT s.shard FROM shards s WHERE s.lease_id IS NULL ORDER BY s.shard LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
  UPDATE shards s SET lease_id = $1, epoch = s.epoch + 1, since = now()
  FROM free WHERE s.shard = free.shard AND s.lease_id IS NULL
  RETURNING s.shard, s.epoch`);

const release = prepared(`
  UPDATE shards s SET lease_id = NULL, since = now()
  FROM unnest($2::integer[], $3::integer[]) AS i (shard, epoch)
  WHERE s.shard = i.shard::smallint AND s.lease_id = $1 AND s.epoch = i.epoch`);

const owned = prepared<OwnedShard>("SELECT s.shard, s.epoch FROM shards s WHERE s.lease_id = $1");

const announceShards = prepared("SELECT pg_notify('paybell_shards', '')");

/** The owners of shards, in PostgreSQL. */
export function postgresShards(engine: Pool, beats: () => Promise<Client>): ShardStore {
  return {
    map: async (leaseId) => (await map.first(engine, [leaseId])) ?? { workers: [], mine: [], free: 0 },

    claim: (leaseId, count) => claim.rows(engine, [leaseId, count]),

    owned: async (leaseId) => owned.rows(await beats(), [leaseId]),

    async release(leaseId, shards, over) {
      const connection = over === "lease" ? await beats() : engine;
      const columns = [integerArray(shards.map(({ shard }) => shard)), integerArray(shards.map(({ epoch }) => epoch))];
      await release.run(connection, [leaseId, ...columns]);
      await announceShards.run(connection);
    },
  };
}
