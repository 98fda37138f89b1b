import { expect, test } from "vitest";
import type { EventKind, NewEvent } from "../events.ts";
import { ShardWatch, type ShardWatchParts } from "./shard-watch.ts";

function watching(more: Partial<ShardWatchParts> = {}) {
  const state = { nowMs: 0, unowned: [] as readonly number[] };
  const events: NewEvent[] = [];
  const asked: EventKind[] = [];
  const watch = new ShardWatch({
    unowned: () => Promise.resolve(state.unowned),
    wasSentSince: (kind) => {
      asked.push(kind);
      return Promise.resolve(false);
    },
    events: { record: (event) => void events.push(event) },
    nowMs: () => state.nowMs,
    ...more,
  });
  const lookAt = async (nowMs: number, unowned: number | readonly number[]) => {
    const shards = typeof unowned === "number" ? Array.from({ length: unowned }, (_, shard) => shard) : unowned;
    Object.assign(state, { nowMs, unowned: shards });
    await watch.look();
  };
  return { lookAt, events, asked };
}

test("shards without an owner for 15 s are reported, with how many and for how long", async () => {
  const { lookAt, events, asked } = watching();
  await lookAt(1_000, 256);
  await lookAt(15_999, 200);
  expect(events).toEqual([]);
  await lookAt(17_500, 12);
  const detail = { shards: 12, seconds: 16 };
  expect(events).toEqual([{ kind: "shards_unowned", partnerId: null, subjectId: null, detail }]);
  expect(asked).toEqual(["shards_unowned"]);
});

test("a take-over in between begins the time anew", async () => {
  const { lookAt, events } = watching();
  await lookAt(0, 5);
  await lookAt(14_000, 0);
  await lookAt(15_000, 5);
  await lookAt(29_000, 5);
  expect(events).toEqual([]);
  await lookAt(30_000, 5);
  expect(events).toHaveLength(1);
});

test("shards that change hands are no alert, although at each look another one has no owner", async () => {
  const { lookAt, events } = watching();
  for (let nth = 0; nth < 10; nth += 1) await lookAt(nth * 5_000, [nth, nth + 1]);
  expect(events).toEqual([]);
});

test("an instance does not report again what another reported within ten minutes", async () => {
  const since: number[] = [];
  const { lookAt, events } = watching({
    wasSentSince: (_, sinceMs) => {
      since.push(sinceMs);
      return Promise.resolve(true);
    },
  });
  await lookAt(0, 5);
  const beforeMs = Date.now();
  await lookAt(60_000, 5);
  expect(events).toEqual([]);
  expect(since[0]).toBeGreaterThanOrEqual(beforeMs - 600_000);
  expect(since[0]).toBeLessThanOrEqual(Date.now() - 600_000);
});

test("a database that does not answer is no finding, and does not begin the time anew", async () => {
  let isAway = false;
  const { lookAt, events } = watching({
    unowned: () => (isAway ? Promise.reject(new Error("away")) : Promise.resolve([1, 2, 3, 4, 5])),
  });
  await lookAt(0, 5);
  isAway = true;
  await expect(lookAt(10_000, 5)).rejects.toThrow("away");
  expect(events).toEqual([]);
  isAway = false;
  await lookAt(15_000, 5);
  expect(events).toHaveLength(1);
});
