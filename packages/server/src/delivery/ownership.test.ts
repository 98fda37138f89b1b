import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { LeaseId } from "../ids.ts";
import { shardCount } from "../shard.ts";
import type { OwnedShard, ShardMap } from "./ownership.ts";
import { Ownership } from "./ownership.ts";

/** Workers over one table of shards; every timer fires at once. */
function workersOver(count: number) {
  const owners: (LeaseId | null)[] = Array.from({ length: shardCount }, () => null);
  const ids = Array.from({ length: count }, (_, number) => `lease ${number}` as LeaseId);
  const living = new Set(ids);
  const owned = (id: LeaseId | null) => owners.flatMap((owner, shard) => (owner === id ? [{ shard, epoch: 1 }] : []));
  const store = {
    map: async (id: LeaseId): Promise<ShardMap> => ({
      workers: [...living].map((leaseId) => ({ leaseId, ageMs: 60_000, owned: owned(leaseId).length })),
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
  };
  const gone: number[] = [];
  const ownerships = ids.map(
    (id) =>
      new Ownership({
        store,
        homes: 1,
        lease: { current: () => (living.has(id) ? id : undefined), remainingMs: () => 5_000 },
        clock: { monotonicMs: () => 0 },
        timers: {
          after: (_, work) => {
            work();
            return () => undefined;
          },
        },
        prepare: async () => undefined,
        onReady: () => undefined,
        windUp: async () => undefined,
        onGone: (shards) => void gone.push(...shards),
        onTrouble: () => undefined,
      }),
  );
  return { ownerships, living, ids, gone };
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
  });

  test("stop believing in a lease that expired", async () => {
    const { ownerships, living, ids, gone } = workersOver(1);
    const [ownership] = ownerships;
    await ownership?.tick();
    expect(ownership?.ready).toHaveLength(shardCount);
    for (const id of ids) living.delete(id);
    ownership?.lose();
    expect(ownership?.count).toBe(0);
    expect(gone).toHaveLength(shardCount);
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
  async function ownerOf(late: "release" | "prepare") {
    const owned = new Set(Array.from({ length: shardCount }, (_, shard) => shard));
    const answers: (() => void)[] = [];
    const over = { late: undefined as typeof late | undefined, others: 0, beforeMap: () => Promise.resolve() };
    const answer = async (what: typeof late, shards: readonly number[]) => {
      if (over.late !== what || (shards[0] ?? 0) >= shardCount / 2) return;
      await new Promise<void>((resolve) => answers.push(resolve));
    };
    const leaseId = "lease" as LeaseId;
    const waitsMs: number[] = [];
    const ownership = new Ownership({
      store: {
        map: async () => {
          const mine = [...owned].map((shard) => ({ shard, epoch: 1 }));
          await over.beforeMap();
          const others = Array.from({ length: over.others }, () => ({
            leaseId: "other" as LeaseId,
            ageMs: 60_000,
            owned: 0,
          }));
          return { workers: [{ leaseId, ageMs: 60_000, owned: mine.length }, ...others], mine, free: 0 };
        },
        claim: async () => [],
        release: async (_, shards) => {
          const numbers = shards.map(({ shard }) => shard);
          await answer("release", numbers);
          for (const shard of numbers) owned.delete(shard);
        },
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
      prepare: (shards) => answer("prepare", shards),
      onReady: () => undefined,
      windUp: async () => undefined,
      onGone: () => undefined,
      onTrouble: () => undefined,
    });
    if (late === "release") await inTime(ownership.tick());
    over.late = late;
    return { ownership, owned, over, answers, waitsMs };
  }

  test("keeps a tick waiting for a second at most", async () => {
    const { ownership, waitsMs } = await ownerOf("prepare");
    await inTime(ownership.tick());
    expect(Math.max(...waitsMs)).toBe(1_000);
    expect(ownership.ready).toHaveLength(128);
  });

  test("gives up no shard that an older answer gives back", async () => {
    const { ownership, owned, over, answers } = await ownerOf("release");
    over.others = 1;
    await inTime(ownership.tick());
    const count = ownership.count;
    over.beforeMap = async () => {
      // The map was read before the release, and its answer comes after the release's.
      for (const answer of answers.splice(0)) answer();
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    over.others = 0;
    await inTime(ownership.tick());
    expect(owned.size).toBeLessThan(count);
    expect(ownership.ready.filter((shard) => !owned.has(shard))).toEqual([]);
    over.late = undefined;
    over.beforeMap = () => Promise.resolve();
    await inTime(ownership.tick());
    expect(ownership.ready).toHaveLength(owned.size);
  });

  test("is waited for at the stop, and its shards are released, too", async () => {
    const { ownership, owned, answers } = await ownerOf("prepare");
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
  /** One worker whose reads take a while, and fail or not. */
  function workerWith({ tookMs }: { tookMs: number }) {
    const over = { nowMs: 0, leaseId: "lease" as LeaseId | undefined, isFailing: true, tookMs };
    const read = async () => {
      over.nowMs += over.tookMs;
      if (over.isFailing) throw new Error("too many clients already");
    };
    const ownership = new Ownership({
      store: {
        map: async (leaseId) => {
          await read();
          return { workers: [{ leaseId, ageMs: 60_000, owned: 0 }], mine: [], free: 0 };
        },
        claim: async () => [],
        release: async () => undefined,
      },
      homes: 1,
      lease: { current: () => over.leaseId, remainingMs: () => 5_000 },
      clock: { monotonicMs: () => over.nowMs },
      timers: { after: () => () => undefined },
      prepare: async () => undefined,
      onReady: () => undefined,
      windUp: async () => undefined,
      onGone: () => undefined,
      onTrouble: () => undefined,
    });
    const tick = async () => {
      await ownership.tick().catch(() => undefined);
      over.nowMs += 1_000;
    };
    return { over, ownership, tick };
  }

  test("is not fit after 5 s, and fit again when what a tick reads is read, without a lease", async () => {
    const { over, ownership, tick } = workerWith({ tookMs: 0 });
    for (let ticks = 0; ticks < 5; ticks += 1) await tick();
    expect(ownership.isFit).toBe(true);
    await tick();
    expect(ownership.isFit).toBe(false);
    over.leaseId = undefined;
    await tick();
    expect(ownership.isFit).toBe(false);
    over.isFailing = false;
    await tick();
    expect(ownership.isFit).toBe(true);
  });

  test("stays fit if one statement was not answered for long, and while its lease is silent", async () => {
    const { over, ownership, tick } = workerWith({ tookMs: 15_000 });
    await tick();
    over.leaseId = undefined;
    await tick();
    Object.assign(over, { leaseId: "lease", tookMs: 0 });
    await tick();
    expect(ownership.isFit).toBe(true);
  });
});
