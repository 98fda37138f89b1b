import fc from "fast-check";
import { DatabaseError } from "pg";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ServiceError } from "../../errors.ts";
import { GroupCommit, type GroupCommitOptions } from "./group-commit.ts";

function databaseError(code: string): DatabaseError {
  const error = new DatabaseError(`error ${code}`, 0, "error");
  error.code = code;
  return error;
}

function groupCommit(
  commit: (items: readonly number[]) => Promise<ReadonlyMap<string, number>>,
  change: Partial<GroupCommitOptions<number, number>> = {},
) {
  return new GroupCommit<number, number>({
    name: "test",
    key: String,
    bytes: () => 1,
    commit,
    giveUpAfterMs: 0,
    ...change,
  });
}

const doubled = (items: readonly number[]) => new Map(items.map((item) => [String(item), item * 2]));

test("items that come together share a commit; while it is on its way the next ones gather", async () => {
  const batches: number[] = [];
  const group = groupCommit(
    async (items) => {
      batches.push(items.length);
      return doubled(items);
    },
    { concurrency: 1 },
  );
  const first = Array.from({ length: 10 }, (_, i) => group.add(i));
  await first[0];
  await Promise.all(Array.from({ length: 20 }, (_, i) => group.add(100 + i)));
  expect(batches).toEqual([10, 20]);
});

test("the observer of an item gets the rows of its batch, or the error", async () => {
  const told: string[] = [];
  const onAdded = (item: number) => (rows: number, error?: unknown) => {
    told.push(`${item}: ${rows}${error === undefined ? "" : ` ${(error as Error).message}`}`);
  };
  const good = groupCommit(async (items) => doubled(items), { onAdded });
  await Promise.all([good.add(1), good.add(2)]);
  const bad = groupCommit(() => Promise.reject(new Error("a bug")), { onAdded });
  await expect(bad.add(3)).rejects.toThrow("a bug");
  const gone = groupCommit(() => Promise.reject(databaseError("08006")), { onAdded });
  await expect(gone.add(4)).rejects.toBeInstanceOf(ServiceError);
  expect(told).toEqual(["1: 2", "2: 2", "3: 1 a bug", "4: 0 The database cannot be reached."]);
});

describe("beside a batch on its way", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  function slowCommits() {
    const batches: number[] = [];
    const ends: (() => void)[] = [];
    const group = groupCommit(
      async (items) => {
        batches.push(items.length);
        await new Promise<void>((resolve) => ends.push(resolve));
        return doubled(items);
      },
      { concurrency: 2, rowsMin: 4 },
    );
    return { batches, ends, group };
  }

  async function turns(): Promise<void> {
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  }

  test("few wait for its end, many do not", async () => {
    const { batches, ends, group } = slowCommits();
    const added = [group.add(1)];
    await turns();
    added.push(group.add(2), group.add(3), group.add(4));
    await turns();
    expect(batches).toEqual([1]);
    ends.shift()?.();
    await turns();
    expect(batches).toEqual([1, 3]);
    added.push(...[5, 6, 7, 8].map((item) => group.add(item)));
    await turns();
    expect(batches).toEqual([1, 3, 4]);
    for (const end of ends.splice(0)) end();
    expect(await Promise.all(added)).toEqual([2, 4, 6, 8, 10, 12, 14, 16]);
  });

  test("few go all the same when it does not end", async () => {
    const { batches, ends, group } = slowCommits();
    const added = [group.add(1)];
    await turns();
    added.push(group.add(2));
    await turns();
    vi.advanceTimersByTime(20);
    await turns();
    expect(batches).toEqual([1, 1]);
    for (const end of ends.splice(0)) end();
    expect(await Promise.all(added)).toEqual([2, 4]);
  });
});

test("a batch is bounded in rows and in bytes, and one larger than the bound goes alone", async () => {
  const batches: number[] = [];
  const group = groupCommit(
    async (items) => {
      batches.push(items.length);
      return doubled(items);
    },
    { concurrency: 1, rowsMax: 4, bytesMax: 10, bytes: (item) => (item === 3 ? 50 : 5) },
  );
  await Promise.all([1, 2, 3, 4, 5, 6].map((item) => group.add(item)));
  expect(batches).toEqual([2, 1, 2, 1]);
  expect(group.waiting).toEqual({ rows: 0, bytes: 0 });
});

test("two items of one key never share a batch", async () => {
  const batches: (readonly number[])[] = [];
  const group = groupCommit(
    async (items) => {
      batches.push(items);
      return new Map(items.map((item) => [String(item % 10), item]));
    },
    { key: (item) => String(item % 10) },
  );
  expect(await Promise.all([group.add(1), group.add(11), group.add(2)])).toEqual([1, 11, 2]);
  for (const batch of batches) expect(new Set(batch.map((item) => item % 10)).size).toBe(batch.length);
});

test("an item whose key is in flight costs nothing while it waits", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let turns = 0;
  const turn = () => {
    turns += 1;
    return undefined;
  };
  const group = groupCommit(
    async (items) => {
      await promise;
      return doubled(items);
    },
    { turn },
  );
  const added = [group.add(1), group.add(1)];
  for (let nth = 0; nth < 50; nth += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(turns).toBeLessThan(4);
  resolve();
  expect(await Promise.all(added)).toEqual([2, 2]);
  await group.drained();
});

test("every bad row fails alone, every good one is answered, wherever the bad ones stand", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { maxLength: 120 }),
      fc.integer(),
      async (items, salt) => {
        const bad = (item: number) => (item * 31 + salt) % 7 === 0;
        const group = groupCommit(async (batch) => {
          if (batch.some(bad)) throw databaseError("22P05");
          return doubled(batch);
        });
        const answers = await Promise.allSettled(items.map((item) => group.add(item)));
        answers.forEach((answer, i) => {
          expect(answer.status).toBe(bad(items[i] ?? 0) ? "rejected" : "fulfilled");
        });
      },
    ),
  );
});

test("a deadlock is tried again with the same batch", async () => {
  let tries = 0;
  const group = groupCommit(async (items) => {
    tries += 1;
    if (tries < 3) throw databaseError("40P01");
    return doubled(items);
  });
  expect(await group.add(4)).toBe(8);
  expect(tries).toBe(3);
});

test("a deadlock after an outage is tried again, too", async () => {
  const failures = [...Array.from({ length: 9 }, () => "57P01"), "40P01"];
  const group = groupCommit(
    async (items) => {
      const failure = failures.shift();
      if (failure !== undefined) throw databaseError(failure);
      return doubled(items);
    },
    { giveUpAfterMs: Number.POSITIVE_INFINITY },
  );
  expect(await group.add(4)).toBe(8);
});

test("an unknown COMMIT is repeated, and answered by the repeat", async () => {
  let tries = 0;
  const group = groupCommit(
    async (items) => {
      tries += 1;
      if (tries === 1) throw Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" });
      return doubled(items);
    },
    { giveUpAfterMs: Number.POSITIVE_INFINITY },
  );
  expect(await group.add(5)).toBe(10);
});

test("an item that cannot be written in time is refused as unavailable, and named as in doubt", async () => {
  const doubtful: number[] = [];
  let refused = 0;
  const group = groupCommit(
    async () => {
      throw databaseError("57P01");
    },
    { onUnknownCommit: (item) => doubtful.push(item), onRefused: () => (refused += 1) },
  );
  await expect(group.add(6)).rejects.toMatchObject({ code: "unavailable", retryAfterS: 5 });
  expect(doubtful).toEqual([6]);
  expect(refused).toBe(1);
});

test("a full queue refuses at once, before anything is accepted", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let refused = 0;
  const group = groupCommit(
    async (items) => {
      await promise;
      return doubled(items);
    },
    { concurrency: 1, rowsMax: 1, queueRowsMax: 3, onRefused: () => (refused += 1) },
  );
  const accepted = [1, 2, 3].map((item) => group.add(item));
  await expect(group.add(4)).rejects.toBeInstanceOf(ServiceError);
  expect(refused).toBe(1);
  resolve();
  expect(await Promise.all(accepted)).toEqual([2, 4, 6]);
  await group.drained();
});

test("a queue is bounded in bytes, too, which a commit gives back", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const group = groupCommit(
    async (items) => {
      await promise;
      return doubled(items);
    },
    { queueBytesMax: 10, bytes: () => 6 },
  );
  const accepted = group.add(1);
  await expect(group.add(2)).rejects.toMatchObject({ code: "unavailable", retryAfterS: 1 });
  resolve();
  await accepted;
  expect(await group.add(3)).toBe(6);
});

test("what waits in an outage is refused without a doubt, and takes no room any more", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const [begun, doubtful] = [Promise.withResolvers<void>(), [] as number[]];
  const commit = async () => {
    begun.resolve();
    await promise;
    throw databaseError("57P01");
  };
  const group = groupCommit(commit, { concurrency: 1, onUnknownCommit: (item) => doubtful.push(item) });
  const first = group.add(1);
  await begun.promise;
  const added = Promise.allSettled([first, group.add(2), group.add(3)]);
  resolve();
  expect((await added).map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect([doubtful, group.waiting]).toEqual([[1], { rows: 0, bytes: 0 }]);
  await group.drained();
});

test("two batches run at once, each in the order of its keys, and are drained when both have ended", async () => {
  const batches: (readonly number[])[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let ended = 0;
  const group = groupCommit(
    async (items) => {
      if (batches.push(items) === 2) resolve();
      await promise;
      ended += 1;
      return doubled(items);
    },
    { rowsMax: 2 },
  );
  const added = Promise.all([4, 2, 3, 1].map((item) => group.add(item)));
  while (batches.length < 1) await new Promise((turn) => setImmediate(turn));
  await group.drained();
  expect([ended, batches]).toEqual([
    2,
    [
      [2, 4],
      [1, 3],
    ],
  ]);
  expect(await added).toEqual([8, 4, 6, 2]);
});

test("a bug in a commit reaches its callers and is not repeated", async () => {
  let tries = 0;
  const group = groupCommit(async () => {
    tries += 1;
    throw new TypeError("a bug");
  });
  await expect(group.add(7)).rejects.toThrow("a bug");
  expect(tries).toBe(1);
});
