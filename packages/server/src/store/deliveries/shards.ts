import type { Client, Pool } from "pg";
import type { OwnedShard, ShardMap, ShardStore, WorkerShare } from "../../delivery/ownership.ts";
import type { LeaseId } from "../../ids.ts";
import { integerArray } from "../database/columns.ts";

const map = {
  name: "shard_map",
  text: `
    SELECT (SELECT coalesce(json_agg(w), '[]') FROM (
        SELECT l.id AS "leaseId", l.beat AS beats,
          (SELECT count(*) FROM shards s WHERE s.lease_id = l.id) AS owned
        FROM leases l WHERE l.kind = 'delivery') AS w) AS workers,
      (SELECT coalesce(json_agg(m), '[]') FROM (
        SELECT s.shard, s.epoch FROM shards s WHERE s.lease_id = $1) AS m) AS mine,
      (SELECT count(*) FROM shards s WHERE s.lease_id IS NULL) AS free`,
};

// The row's lock makes it a compare-and-set: after waiting for it, PostgreSQL checks again whether the shard is free.
// The foreign key refuses a deleted lease. Measured: NOT EXISTS (living lease) gave one shard to two owners, because
// the second check reads an old snapshot of the other table.
const claim = {
  name: "claim_shards",
  text: `
    WITH free AS (
      SELECT s.shard FROM shards s WHERE s.lease_id IS NULL ORDER BY s.shard LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
    UPDATE shards s SET lease_id = $1, epoch = s.epoch + 1, since = now()
    FROM free WHERE s.shard = free.shard AND s.lease_id IS NULL
    RETURNING s.shard, s.epoch`,
};

const release = {
  name: "release_shards",
  text: `
    UPDATE shards s SET lease_id = NULL, since = now()
    FROM unnest($2::integer[], $3::integer[]) AS i (shard, epoch)
    WHERE s.shard = i.shard::smallint AND s.lease_id = $1 AND s.epoch = i.epoch`,
};

const owned = { name: "owned_shards", text: "SELECT s.shard, s.epoch FROM shards s WHERE s.lease_id = $1" };

const announceShards = { name: "announce_shards", text: "SELECT pg_notify('paybell_shards', '')" };

/** The owners of shards, in PostgreSQL. */
export class PostgresShards implements ShardStore {
  readonly #engine: Pool;
  readonly #beats: () => Promise<Client>;

  /** @param beats the connection of the lease */
  constructor(engine: Pool, beats: () => Promise<Client>) {
    this.#engine = engine;
    this.#beats = beats;
  }

  async map(leaseId: LeaseId): Promise<ShardMap> {
    type Row = { workers: readonly WorkerShare[]; mine: readonly OwnedShard[]; free: number };
    const { rows } = await this.#engine.query<Row>({ ...map, values: [leaseId] });
    const [{ workers, mine, free } = { workers: [], mine: [], free: 0 }] = rows;
    return { workers, mine, free };
  }

  async claim(leaseId: LeaseId, count: number): Promise<readonly OwnedShard[]> {
    return (await this.#engine.query<OwnedShard>({ ...claim, values: [leaseId, count] })).rows;
  }

  async owned(leaseId: LeaseId): Promise<readonly OwnedShard[]> {
    return (await (await this.#beats()).query<OwnedShard>({ ...owned, values: [leaseId] })).rows;
  }

  async release(leaseId: LeaseId, shards: readonly OwnedShard[], over?: "lease"): Promise<void> {
    const connection = over === "lease" ? await this.#beats() : this.#engine;
    const columns = [integerArray(shards.map(({ shard }) => shard)), integerArray(shards.map(({ epoch }) => epoch))];
    await connection.query({ ...release, values: [leaseId, ...columns] });
    await connection.query(announceShards);
  }
}
