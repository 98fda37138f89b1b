import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import type { OwnedShard } from "../../delivery/worker/ownership.ts";
import { type LeaseId, newId, shardCount, shardOf } from "../../ids.ts";
import { postgresLeases } from "../leases.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresShards } from "./shards.ts";

const connections = await openTestDatabase({ connectionsMax: 14 });
const beats = await connections.connectDirectly();
afterAll(() => beats.end());
const shards = postgresShards(connections.engine, () => Promise.resolve(beats));
beforeEach(async () => {
  await connections.pool.query("UPDATE shards SET lease_id = NULL, epoch = 0");
  await connections.pool.query("DELETE FROM leases");
});
async function worker(kind: "delivery" | "api" = "delivery"): Promise<LeaseId> {
  const id = newId<"lease">();
  await connections.pool.query("INSERT INTO leases (id, kind, host, version) VALUES ($1, $2, 'test', '0')", [id, kind]);
  return id;
}

const die = (id: LeaseId) => connections.pool.query("DELETE FROM leases WHERE id = $1", [id]);
/** A claim for an expiring lease may end in a deadlock too: the next tick settles it. */
function refused(error: Error): undefined {
  expect(error.message).toMatch(/foreign key|deadlock detected/);
}
const numbers = (owned: readonly OwnedShard[]) => owned.map(({ shard }) => shard).sort((a, b) => a - b);

async function ownerOf(shard: number): Promise<{ lease_id: string | null; epoch: number } | undefined> {
  return (await connections.pool.query("SELECT lease_id, epoch FROM shards WHERE shard = $1", [shard])).rows[0];
}

test("every partner falls into one of the shards, and the database agrees about which", async () => {
  const { rows } = await connections.pool.query<{ shard: number }>("SELECT shard FROM shards ORDER BY shard");
  expect(rows.map(({ shard }) => shard)).toEqual(Array.from({ length: shardCount }, (_, at) => at));
  const partnerId = await insertPartner(connections.pool);
  const said = await connections.pool.query("SELECT get_byte(uuid_send($1::uuid), 15) AS shard", [partnerId]);
  expect(said.rows).toEqual([{ shard: shardOf(partnerId) }]);
});

describe("a take", () => {
  test("brings free shards, as many as asked for, each under a new epoch", async () => {
    const id = await worker();
    const taken = await shards.claim(id, 3);
    expect(taken.map(({ epoch }) => epoch)).toEqual([1, 1, 1]);
    const rest = await shards.claim(id, 1_000);
    expect(numbers([...taken, ...rest])).toEqual(Array.from({ length: shardCount }, (_, at) => at));
    expect(await shards.claim(id, 1)).toEqual([]);
  });

  test("takes nothing of a living owner", async () => {
    const [owner, other] = [await worker(), await worker()];
    await shards.claim(owner, shardCount);
    expect(await shards.claim(other, shardCount)).toEqual([]);
    expect((await shards.map(owner)).mine).toHaveLength(shardCount);
  });

  test("rejects for a lease that is gone, and leaves the shards free", async () => {
    const id = await worker();
    await die(id);
    await expect(shards.claim(id, 5)).rejects.toThrow(/foreign key/);
    expect((await shards.map(id)).free).toBe(shardCount);
  });

  test("that waits for another's look takes only what that one left", async () => {
    const [first, second] = [await worker(), await worker()];
    await shards.claim(await worker(), shardCount - 1);
    const { rows } = await connections.pool.query<{ shard: number }>("SELECT shard FROM shards WHERE lease_id IS NULL");
    const holder = await connections.pool.connect();
    try {
      await holder.query("BEGIN");
      await holder.query("UPDATE shards SET lease_id = $1, epoch = epoch + 1 WHERE lease_id IS NULL", [first]);
      expect(await shards.claim(second, 1)).toEqual([]);
      await holder.query("COMMIT");
    } finally {
      holder.release();
    }
    expect(await shards.claim(second, 1)).toEqual([]);
    expect(await ownerOf(rows[0]?.shard ?? -1)).toEqual({ lease_id: first, epoch: 1 });
  });

  test("of however many workers at once never gives one shard to two, while leases die and others give", async () => {
    const step = fc.record({
      by: fc.nat(5),
      count: fc.integer({ min: 1, max: 120 }),
      next: fc.constantFrom("keep", "give", "die"),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 12 }), async (steps) => {
        await connections.pool.query("DELETE FROM leases");
        const { rows: before } = await connections.pool.query<OwnedShard>("SELECT shard, epoch FROM shards");
        const workers = await Promise.all(Array.from({ length: 6 }, () => worker()));
        const all: OwnedShard[] = [];
        await Promise.all(
          steps.map(async ({ by, count, next }) => {
            const id = workers[by] as LeaseId;
            const taken = await shards.claim(id, count).catch(refused);
            all.push(...(taken ?? []));
            if (next === "give") await shards.release(id, taken ?? []).catch(refused);
            if (next === "die") await die(id).catch(refused);
          }),
        );
        // An epoch belongs to one ownership: two owners of the same one would make a duplicate.
        const names = all.map(({ shard, epoch }) => `${shard} ${epoch}`);
        expect(new Set(names).size).toBe(names.length);
        for (const { shard, epoch } of before) {
          const epochs = all.filter((one) => one.shard === shard).map((one) => one.epoch - epoch);
          expect(epochs.sort((a, b) => a - b)).toEqual(epochs.map((_, at) => at + 1));
        }
        const maps = await Promise.all(workers.map((id) => shards.map(id)));
        const owned = maps.flatMap(({ mine }) => numbers(mine));
        expect(new Set(owned).size).toBe(owned.length);
        expect(owned.length + (maps[0]?.free ?? 0)).toBe(shardCount);
      }),
      { numRuns: 12, endOnFailure: true },
    );
  });
});

describe.each([undefined, "lease"] as const)("a shard after its release over the connection of %s", (over) => {
  test("is free again, and all listeners are notified", async () => {
    const id = await worker();
    const [given, kept] = (await shards.claim(id, 2)) as [OwnedShard, OwnedShard];
    const listening = await connections.connectDirectly();
    onTestFinished(() => listening.end());
    const told: string[] = [];
    listening.on("notification", ({ channel }) => told.push(channel));
    await listening.query("LISTEN paybell_shards");
    await shards.release(id, [given], over);
    await expect.poll(() => told).toEqual(["paybell_shards"]);
    expect((await shards.map(id)).mine).toEqual([kept]);
    expect(await ownerOf(given.shard)).toEqual({ lease_id: null, epoch: given.epoch });
  });

  test("is one's own, under the epoch that one knows", async () => {
    const [id, other] = [await worker(), await worker()];
    const [shard] = (await shards.claim(id, 1)) as [OwnedShard];
    await shards.release(other, [shard], over);
    await shards.release(id, [{ ...shard, epoch: shard.epoch - 1 }], over);
    expect(await ownerOf(shard.shard)).toEqual({ lease_id: id, epoch: shard.epoch });
  });
});

test("a shard is released while the engine's connections are not answered", async () => {
  const id = await worker();
  const [shard] = (await shards.claim(id, 1)) as [OwnedShard];
  const engine = vi
    .spyOn(connections.engine, "query")
    .mockRejectedValue(new Error("too many clients already") as never);
  onTestFinished(() => engine.mockRestore());
  await expect(shards.release(id, [shard])).rejects.toThrow("too many clients already");
  expect(await shards.owned(id, "lease")).toEqual([shard]);
  await shards.release(id, [shard], "lease");
  expect(await ownerOf(shard.shard)).toEqual({ lease_id: null, epoch: shard.epoch });
});

test("a worker whose beats say that it cannot send keeps its shards, and counts for no share", async () => {
  const [id, other] = [await worker(), await worker()];
  const mine = await shards.claim(id, 2);
  const leases = postgresLeases(() => Promise.resolve(beats));
  await leases.beat(id, "api");
  const map = await shards.map(id);
  expect(map.workers.map(({ leaseId }) => leaseId)).toEqual([other]);
  expect(numbers(map.mine)).toEqual(numbers(mine));
  expect(map.free).toBe(shardCount - 2);
  await leases.beat(id, "delivery");
  expect((await shards.map(other)).workers.map(({ leaseId }) => leaseId).toSorted()).toEqual([id, other].toSorted());
});

test("a lease that is removed leaves its shards free, their epochs as they were", async () => {
  const [id, other] = [await worker(), await worker()];
  const taken = await shards.claim(id, 2);
  const connection = await connections.connectDirectly();
  onTestFinished(() => connection.end());
  await postgresLeases(() => Promise.resolve(connection)).remove(id);
  for (const { shard, epoch } of taken) expect(await ownerOf(shard)).toEqual({ lease_id: null, epoch });
  const again = await shards.claim(other, shardCount);
  const epochs = new Map(again.map(({ shard, epoch }) => [shard, epoch]));
  for (const { shard, epoch } of taken) expect(epochs.get(shard)).toBe(epoch + 1);
});

test("the map has the living delivery workers with what each owns, and nobody else", async () => {
  expect(await shards.map(newId())).toMatchObject({ workers: [], mine: [] });
  const [id, other] = [await worker(), await worker()];
  await worker("api");
  // A step of the database's clock changes nothing.
  await connections.pool.query("UPDATE leases SET beat = 20, started_at = now() + interval '1 minute' WHERE id = $1", [
    other,
  ]);
  const mine = await shards.claim(id, 2);
  await shards.claim(other, 5);
  const map = await shards.map(id);
  expect(map.free).toBe(shardCount - 7);
  expect(numbers(map.mine)).toEqual(numbers(mine));
  expect(map.mine).toEqual(expect.arrayContaining([...mine]));
  expect(new Map(map.workers.map(({ leaseId, beats }) => [leaseId, beats]))).toEqual(
    new Map([
      [id, 0],
      [other, 20],
    ]),
  );
  expect(new Map(map.workers.map(({ leaseId, owned }) => [leaseId, owned]))).toEqual(
    new Map([
      [id, 2],
      [other, 5],
    ]),
  );
});
