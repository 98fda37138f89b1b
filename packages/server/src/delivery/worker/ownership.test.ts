import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { type LeaseId, newId, shardCount } from "../../ids.ts";
import type { OwnedShard, ShardMap } from "./ownership.ts";
import { Ownership } from "./ownership.ts";

function neverAsked(): Promise<never> {
  return Promise.reject(new Error("a worker whose ticks do not fail asks nothing over the connection of its lease"));
}

/** Workers over one table of shards; every timer fires at once. */
function workersOver(count: number) {
  const owners: (LeaseId | null)[] = Array.from({ length: shardCount }, () => null);
  const ids = Array.from({ length: count }, (_, number) => `lease ${number}` as LeaseId);
  const living = new Set(ids);
  const newcomers = new Set<LeaseId>();
  const owned = (id: LeaseId | null) => owners.flatMap((owner, shard) => (owner === id ? [{ shard, epoch: 1 }] : []));
  const store = {
    map: async (id: LeaseId): Promise<ShardMap> => ({
      workers: [...living].map((leaseId) => ({
        leaseId,
        beats: newcomers.has(leaseId) ? 9 : 10,
        owned: owned(leaseId).length,
      })),
      mine: owned(id),
      free: owned(null).length,
    }),
    claim: async (id: LeaseId, most: number): Promise<readonly OwnedShard[]> => {
      const taken = owned(null).slice(0, most);
      for (const { shard } of taken) owners[shard] = id;
      return taken;
    },
    release: async (id: LeaseId, shards: readonly OwnedShard[]): Promise<void> => {
      for (const { shard } of shards) if (owners[shard] === id) owners[shard] = null;
    },
    owned: neverAsked,
  };
  const gone: number[] = [];
  const busy = new Set<number>();
  const ownerships = ids.map(
    (_, number) =>
      new Ownership({
        store,
        homes: 1,
        lease: { current: () => [...living][number], remainingMs: () => 5_000 },
        clock: { monotonicMs: () => 0 },
        timers: {
          after: (_, work) => {
            work();
            return () => undefined;
          },
        },
        prepare: async () => undefined,
        onReady: () => undefined,
        busyShards: () => busy,
        onGone: (shards) => void gone.push(...shards),
        onTrouble: () => undefined,
      }),
  );
  return { ownerships, living, newcomers, ids, gone, busy };
}

describe("workers share the shards", () => {
  test.each([1, 2, 3, 5, 7, 50])("evenly to the floor, %i of them", async (count) => {
    const { ownerships } = workersOver(count);
    for (let round = 0; round < 60; round += 1) for (const ownership of ownerships) await ownership.tick();
    const counts = ownerships.map((ownership) => ownership.count);
    expect(counts.reduce((sum, owned) => sum + owned, 0)).toBe(shardCount);
    expect(Math.min(...counts)).toBeGreaterThanOrEqual(Math.floor(shardCount / count));
  });

  test("and stop moving: nothing changes hands once all have their share", async () => {
    const { ownerships, gone } = workersOver(3);
    for (let round = 0; round < 60; round += 1) for (const ownership of ownerships) await ownership.tick();
    const before = gone.length;
    for (let round = 0; round < 20; round += 1) for (const ownership of ownerships) await ownership.tick();
    expect(gone.length).toBe(before);
    expect(ownerships.every(({ isStable }) => isStable)).toBe(true);
  });

  test("and give none up for a worker that has just started, and may be gone again soon", async () => {
    const { ownerships, living, newcomers, ids } = workersOver(2);
    const second = ids[1] as LeaseId;
    living.delete(second);
    await ownerships[0]?.tick();
    living.add(second);
    newcomers.add(second);
    await ownerships[0]?.tick();
    expect(ownerships[0]?.count).toBe(shardCount);
    newcomers.delete(second);
    await ownerships[0]?.tick();
    expect([ownerships[0]?.count, ownerships[0]?.isStable]).toEqual([shardCount - 8, false]);
  });

  test("and release one only when nothing of it is on the wire or unrecorded, those where nothing is first", async () => {
    const { ownerships, living, ids, gone, busy } = workersOver(2);
    const second = ids[1] as LeaseId;
    living.delete(second);
    await ownerships[0]?.tick();
    living.add(second);
    for (let shard = 0; shard < shardCount; shard += 1) if (shard < 252) busy.add(shard);
    await ownerships[0]?.tick();
    expect(gone).toEqual([252, 253, 254, 255]);
    // Nothing more starts for the other four.
    expect([ownerships[0]?.count, ownerships[0]?.ready.length]).toEqual([shardCount - 4, shardCount - 8]);
    for (let ticks = 0; ticks < 100; ticks += 1) await ownerships[0]?.tick();
    expect([ownerships[0]?.count, ownerships[0]?.ready.length]).toEqual([shardCount - 4, shardCount / 2]);
    busy.delete(2);
    await ownerships[0]?.tick();
    expect(gone).toEqual([252, 253, 254, 255, 2]);
  });

  test("stop believing in a lease that expired", async () => {
    const { ownerships, living, gone } = workersOver(1);
    const [ownership] = ownerships;
    await ownership?.tick();
    await ownership?.tick();
    expect([ownership?.ready.length, ownership?.isStable]).toEqual([shardCount, true]);
    living.clear();
    living.add("the next lease" as LeaseId);
    expect([ownership?.isStable, ownership?.epochOf(newId<"partner">())]).toEqual([false, undefined]);
    // Before anything is read under the next one.
    const ticked = ownership?.tick();
    expect(ownership?.count).toBe(0);
    expect(gone).toHaveLength(shardCount);
    await ticked;
  });
});

describe("a home that answers late", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  /** Time passes only when everything waits for it. */
  async function inTime(work: Promise<void>): Promise<void> {
    let isDone = false;
    const end = () => {
      isDone = true;
    };
    work.then(end, end);
    while (!isDone) await vi.advanceTimersByTimeAsync(100);
    await work;
  }

  /** One worker with every shard, in two homes. What it asks of the first one is answered when the test says. */
  function ownerOf() {
    const owned = new Set(Array.from({ length: shardCount }, (_, shard) => shard));
    const answers: (() => void)[] = [];
    const leaseId = "lease" as LeaseId;
    const waitsMs: number[] = [];
    const ownership: Ownership = new Ownership({
      store: {
        map: async () => {
          const mine = [...owned].map((shard) => ({ shard, epoch: 1 }));
          return { workers: [{ leaseId, beats: 60, owned: mine.length }], mine, free: 0 };
        },
        claim: async () => [],
        release: async (_, shards) => {
          // Nothing starts for one that is being released.
          expect(ownership.ready).toEqual([]);
          for (const { shard } of shards) owned.delete(shard);
        },
        owned: neverAsked,
      },
      homes: 2,
      lease: { current: () => leaseId, remainingMs: () => 5_000 },
      clock: { monotonicMs: () => 0 },
      timers: {
        after: (ms, work) => {
          waitsMs.push(ms);
          const timer = setTimeout(work, ms);
          return () => clearTimeout(timer);
        },
      },
      prepare: async (shards) => {
        if ((shards[0] ?? 0) < shardCount / 2) await new Promise<void>((resolve) => answers.push(resolve));
      },
      onReady: () => undefined,
      busyShards: () => new Set(),
      onGone: () => undefined,
      onTrouble: () => undefined,
    });
    return { ownership, owned, answers, waitsMs };
  }

  test("keeps a tick waiting for a second at most", async () => {
    const { ownership, waitsMs } = ownerOf();
    await inTime(ownership.tick());
    expect(Math.max(...waitsMs)).toBe(1_000);
    expect(ownership.ready).toHaveLength(128);
  });

  test("is waited for at the stop, and its shards are released, too", async () => {
    const { ownership, owned, answers } = ownerOf();
    await inTime(ownership.tick());
    // In time for the stop, and too late for what does not wait.
    setTimeout(() => {
      for (const answer of answers) answer();
    }, 900);
    await inTime(ownership.stop());
    expect([...owned]).toEqual([]);
  });
});

describe("a worker whose ticks fail", () => {
  const leaseId = "lease" as LeaseId;

  /** One worker that claims every free shard, and whose reads take a while, and fail or not. */
  function workerWith({ tookMs = 0, homes = 1, isFailing = true } = {}) {
    const over = {
      nowMs: 0,
      leaseId: leaseId as LeaseId | undefined,
      isFailing,
      tookMs,
      /** No other worker claims them. */
      free: new Set(Array.from({ length: shardCount }, (_, shard) => shard)),
      onWire: new Set<number>(),
      unrecorded: new Set<number>(),
      prepare: async (_: readonly number[]): Promise<void> => undefined,
      claimed: async (): Promise<void> => undefined,
      releasing: async (): Promise<void> => undefined,
      whileReading: (): void => undefined,
    };
    const released: number[][] = [];
    const fitness: boolean[] = [];
    const gone: number[] = [];
    const troubles: unknown[] = [];
    const swept: number[] = [];
    const read = async () => {
      over.nowMs += over.tookMs;
      over.whileReading();
      if (over.isFailing) throw new Error("too many clients already");
    };
    const mine = () => Array.from({ length: shardCount }, (_, shard) => shard).filter((shard) => !over.free.has(shard));
    const ownedOf = (shards: Iterable<number>) => Array.from(shards, (shard) => ({ shard, epoch: 1 }));
    const ownership: Ownership = new Ownership({
      store: {
        map: async () => {
          await read();
          const owned = ownedOf(mine());
          return { workers: [{ leaseId, beats: 60, owned: owned.length }], mine: owned, free: over.free.size };
        },
        claim: async () => {
          const claimed = ownedOf(over.free);
          over.free.clear();
          await over.claimed();
          return claimed;
        },
        release: async (id, shards, by) => {
          expect(id).toBe(leaseId);
          if (by === "lease") {
            await over.releasing();
            released.push(shards.map(({ shard }) => shard));
          }
          for (const { shard } of shards) over.free.add(shard);
        },
        owned: async () => ownedOf(mine()),
      },
      homes,
      lease: { current: () => over.leaseId, remainingMs: () => 5_000 },
      clock: { monotonicMs: () => over.nowMs },
      timers: {
        after: (_, work) => {
          setImmediate(work);
          return () => undefined;
        },
      },
      prepare: (shards) => over.prepare(shards),
      onReady: (shards) => void swept.push(...shards),
      busyShards: (until) => (until === "answered" ? over.onWire : over.unrecorded),
      onFitness: () => void fitness.push(ownership.isFit),
      onGone: (shards) => void gone.push(...shards),
      onTrouble: (error) => void troubles.push(error),
    });
    const tick = async (ticks = 1) => {
      for (let nth = 0; nth < ticks; nth += 1) {
        await ownership.tick().catch(() => undefined);
        over.nowMs += 1_000;
      }
    };
    /** A worker with every shard ready, whose ticks begin to fail. */
    const beginToFail = async () => {
      await tick();
      expect(ownership.ready).toHaveLength(shardCount);
      over.isFailing = true;
      await tick(5);
      expect([ownership.isFit, ownership.ready.length, released]).toEqual([true, shardCount, []]);
    };
    return { over, ownership, tick, beginToFail, released, fitness, gone, troubles, swept };
  }

  const all = Array.from({ length: shardCount }, (_, shard) => shard);

  test("is not fit after 5 s, and fit again when what a tick reads is read, without a lease", async () => {
    const { over, ownership, tick, fitness } = workerWith();
    await tick(5);
    expect(ownership.isFit).toBe(true);
    await tick();
    expect(ownership.isFit).toBe(false);
    over.leaseId = undefined;
    await tick();
    expect(ownership.isFit).toBe(false);
    over.isFailing = false;
    await tick();
    expect(ownership.isFit).toBe(true);
    expect(fitness).toEqual([false, true]);
  });

  test("stays fit if one statement was not answered for long, and while its lease is silent", async () => {
    const { over, ownership, tick } = workerWith({ tookMs: 15_000 });
    await tick();
    over.leaseId = undefined;
    await tick();
    Object.assign(over, { leaseId, tookMs: 0 });
    await tick();
    expect(ownership.isFit).toBe(true);
  });

  test("releases the shards with nothing in flight, and each other one once its POST has ended", async () => {
    const { over, ownership, tick, beginToFail, released, fitness, gone } = workerWith({ isFailing: false });
    await beginToFail();
    over.onWire = new Set([3, 200]);
    await tick();
    expect([ownership.isFit, fitness]).toEqual([false, [false]]);
    const quiet = all.filter((shard) => shard !== 3 && shard !== 200);
    expect(released).toEqual([quiet]);
    expect(gone).toEqual(quiet);
    // Nothing more starts for those that are left.
    expect([ownership.count, ownership.ready]).toEqual([2, []]);
    await tick(10);
    expect(released).toHaveLength(1);
    over.onWire.delete(200);
    await tick();
    over.onWire.delete(3);
    await tick(3);
    expect(released.slice(1)).toEqual([[200], [3]]);
    expect(ownership.count).toBe(0);
    expect(fitness).toEqual([false]);
  });

  test("releases what it claimed without an answer", async () => {
    const { over, tick, released } = workerWith({ isFailing: false });
    over.claimed = () => Promise.reject(new Error("the connection is closed"));
    await tick();
    over.isFailing = true;
    await tick(6);
    expect(released).toEqual([all]);
  });

  test("repeats a release that failed", async () => {
    const { over, ownership, tick, beginToFail, released, troubles } = workerWith({ isFailing: false });
    await beginToFail();
    over.releasing = () => Promise.reject(new Error("the connection is closed"));
    await tick(2);
    expect([ownership.count, ownership.ready, released]).toEqual([shardCount, [], []]);
    expect(troubles).toEqual(Array(2).fill(new Error("the connection is closed")));
    over.releasing = async () => undefined;
    await tick();
    expect([ownership.count, released]).toEqual([0, [all]]);
  });

  test.each(["another lease" as LeaseId, undefined])(
    "releases nothing under a lease that is lost or silent: then it has %s",
    async (now) => {
      const { over, tick, beginToFail, released } = workerWith({ isFailing: false });
      await beginToFail();
      over.onWire.add(3);
      await tick();
      over.leaseId = now;
      over.onWire.clear();
      await tick(2);
      expect(released.flat()).not.toContain(3);
      over.leaseId = leaseId;
      await tick();
      expect(released.at(-1)).toEqual([3]);
    },
  );

  test("is not called unfit while its beats are not answered either", async () => {
    const { over, ownership, tick } = workerWith({ tookMs: 10_000 });
    over.whileReading = () => {
      over.leaseId = undefined;
    };
    for (let ticks = 0; ticks < 3; ticks += 1) {
      over.leaseId = leaseId;
      await tick();
    }
    expect(ownership.isFit).toBe(true);
    over.whileReading = () => undefined;
    over.leaseId = leaseId;
    await tick();
    expect(ownership.isFit).toBe(false);
  });

  test("owns no partner of a claimed shard before its circuits are loaded", async () => {
    const { over, ownership, tick, swept } = workerWith({ isFailing: false });
    const began = Promise.withResolvers<void>();
    const loaded = Promise.withResolvers<void>();
    over.prepare = () => {
      began.resolve();
      return loaded.promise;
    };
    const partnerId = newId<"partner">();
    const ticked = tick();
    await began.promise;
    expect([ownership.count, ownership.epochOf(partnerId), swept]).toEqual([shardCount, undefined, []]);
    loaded.resolve();
    await ticked;
    expect([ownership.epochOf(partnerId), swept]).toEqual([1, all]);
  });

  test("is one whose every home fails: one that fails alone is reported, and tried again", async () => {
    const { over, ownership, troubles, swept } = workerWith({ homes: 2, isFailing: false });
    const away = new Error("the home is away");
    over.prepare = () => Promise.reject(away);
    await expect(ownership.tick()).rejects.toBe(away);
    over.prepare = (shards) => ((shards[0] ?? 0) < shardCount / 2 ? Promise.reject(away) : Promise.resolve());
    await ownership.tick();
    expect([troubles, swept]).toEqual([[away], all.slice(shardCount / 2)]);
    over.prepare = async () => undefined;
    await ownership.tick();
    expect(ownership.ready).toEqual(all);
  });

  test("sends nothing for a shard that is prepared after it was found unfit", async () => {
    const { over, ownership, tick, released } = workerWith({ homes: 2, isFailing: false });
    const late = Promise.withResolvers<void>();
    over.prepare = (shards) => ((shards[0] ?? 0) < shardCount / 2 ? late.promise : Promise.resolve());
    await tick();
    expect(ownership.ready).toEqual(all.slice(shardCount / 2));
    over.isFailing = true;
    // An attempt of an earlier ownership.
    over.onWire.add(7);
    await tick(6);
    expect(ownership.isFit).toBe(false);
    late.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect([ownership.count, ownership.ready]).toEqual([1, []]);
    expect(released.flat()).toHaveLength(shardCount - 1);
  });

  test("stays unfit while circuits cannot be read, and claims shards again once everything is read", async () => {
    const { over, ownership, tick, beginToFail, fitness } = workerWith({ isFailing: false });
    await beginToFail();
    over.onWire.add(3);
    await tick();
    over.isFailing = false;
    over.prepare = () => Promise.reject(new Error("relation endpoints is locked"));
    await tick(3);
    expect([ownership.isFit, ownership.count, fitness]).toEqual([false, 1, [false]]);
    over.prepare = async () => undefined;
    await tick();
    expect([ownership.isFit, fitness]).toEqual([true, [false, true]]);
    over.onWire.clear();
    await tick(3);
    expect(ownership.ready.toSorted((a, b) => a - b)).toEqual(all);
  });
});
