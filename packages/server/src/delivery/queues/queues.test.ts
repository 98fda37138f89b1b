import { describe, expect, test } from "vitest";
import { newId, shardOf } from "../../ids.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import { originCircuit } from "../limits/circuits.ts";
import { Pending, Time } from "../pending.fixture.ts";
import { RecentOutcomes } from "./memory.ts";
import { Queues, type QueuesParts } from "./queues.ts";

const partnerId = newId<"partner">();
const url = "https://partner.example/ipn";
const origin = originCircuit(url);

function queuesOver(more: Partial<QueuesParts> = {}) {
  const time = new Time();
  const store = new Pending();
  const queues = new Queues({
    store,
    homes: 1,
    clock: time.clock,
    timers: time.timers,
    rowsMax: 100,
    bytesMax: 1e6,
    limitsOf: () => ({ rowsMax: 8, mayRead: true }),
    readableAtMs: () => Number.NEGATIVE_INFINITY,
    onReady: () => undefined,
    onTrouble: (_, error) => {
      throw error;
    },
    ...more,
  });
  const queue = (name: string) => {
    const found = queues.queuesOf(partnerId).find((one) => one.name === name);
    if (found === undefined) throw new Error(`there is no queue "${name}"`);
    return found;
  };
  const sweep = (leavesRecent = true) => queues.sweep([shardOf(partnerId)], () => true, leavesRecent);
  return { time, store, queues, queue, sweep };
}

describe("a redelivery", () => {
  test("to the registered URL is sent once the earlier round in another queue has left memory", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId, { queue: origin, callBackUrl: url });
    queues.offer(first);
    queues.startHead(queue(origin));
    const again = { ...first, queue: "", round: 1, toRegistered: true };
    store.rows = [again];
    queues.wake(again);
    await time.pass(100);
    expect(queues.holds(first)).toBe(true);
    expect(queues.holds(again)).toBe(false);
    queues.ended(first, "missed");
    await time.pass(100);
    const { length } = store.reads;
    expect(queues.startHead(queue(""))).toBe(again);
    queues.ended(again, "applied");
    await time.pass(100);
    expect(store.reads).toHaveLength(length);
  });

  test("is found by the sweep, although the outcome of its earlier round is remembered", async () => {
    const { time, store, queues, queue, sweep } = queuesOver();
    const first = deliveryOf(partnerId);
    queues.offer(first);
    queues.startHead(queue(""));
    queues.ended(first, "applied");
    store.rows = [first];
    await sweep();
    await time.pass(100);
    expect(store.reads).toEqual([]);
    store.rows = [{ ...first, round: 1 }];
    await sweep();
    await time.pass(100);
    expect(queue("").head?.round).toBe(1);
  });
});

describe("the sweep", () => {
  test("leaves a row that has just become due to its hint, and finds it if no hint arrived", async () => {
    const { time, store, queue, sweep } = queuesOver();
    store.rows = [deliveryOf(partnerId)];
    store.dueForMs = 20;
    await sweep();
    await time.pass(100);
    expect(store.reads).toEqual([]);
    store.dueForMs = 1_020;
    await sweep();
    await time.pass(100);
    expect(queue("").head).toBe(store.rows[0]);
    const { length } = store.reads;
    await sweep();
    await time.pass(10_000);
    expect(store.reads).toHaveLength(length);
  });

  test("finds a row that is due later, which is read then", async () => {
    const { time, store, sweep } = queuesOver();
    store.rows = [deliveryOf(partnerId)];
    store.dueForMs = -5_000;
    await sweep();
    await time.pass(4_999);
    expect(store.reads).toEqual([]);
    await time.pass(1);
    expect(store.reads).toHaveLength(1);
  });
});

test("of shards that were just claimed leaves nothing to hints, which went to their previous owner", async () => {
  const { time, store, queue, sweep } = queuesOver();
  store.rows = [deliveryOf(partnerId)];
  store.dueForMs = 20;
  await sweep(false);
  await time.pass(100);
  expect(queue("").head).toBe(store.rows[0]);
});

describe("a read", () => {
  test("is everything from the head again if a delivery was released unchanged", async () => {
    const { time, store, queues, queue } = queuesOver();
    const [first, second] = [deliveryOf(partnerId), deliveryOf(partnerId)];
    store.rows = [first, second];
    queues.wake(first);
    await time.pass(100);
    const taken = queues.startHead(queue(""));
    expect(taken).toBe(first);
    queues.releaseUnchanged(first);
    await time.pass(100);
    expect(queues.has(first.id)).toBe(true);
  });

  test("is nothing if a delivery was released by an outcome", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    queues.offer(first);
    queues.startHead(queue(""));
    queues.ended(first, "applied");
    await time.pass(10_000);
    expect(store.reads).toEqual([]);
  });

  test("is nothing for an endpoint that accepts nothing, until told", async () => {
    let readableAtMs: number | undefined;
    const { time, store, queues } = queuesOver({ readableAtMs: () => readableAtMs });
    const row = deliveryOf(partnerId);
    store.rows = [row];
    queues.wake(row);
    await time.pass(10_000);
    expect(store.reads).toEqual([]);
    readableAtMs = Number.NEGATIVE_INFINITY;
    queues.reconsider(partnerId);
    await time.pass(100);
    expect(queues.has(row.id)).toBe(true);
  });

  test("is nothing for a partner that was given away while a sweep ran", async () => {
    const { time, store, queues } = queuesOver();
    store.rows = [deliveryOf(partnerId)];
    await queues.sweep([shardOf(partnerId)], () => false, true);
    await time.pass(100);
    expect([store.reads, queues.partners()]).toEqual([[], []]);
  });

  test("is nothing for a partner that is not owned now", async () => {
    let rows: number | undefined;
    const { time, store, queues } = queuesOver({
      limitsOf: () => ({ rowsMax: rows ?? 0, mayRead: rows !== undefined }),
    });
    const row = deliveryOf(partnerId);
    store.rows = [row];
    queues.offer(row);
    await time.pass(10_000);
    expect([store.reads, queues.rows]).toEqual([[], 0]);
    rows = 8;
    queues.reconsider(partnerId);
    await time.pass(100);
    expect(queues.has(row.id)).toBe(true);
  });
});

test("after a stop nothing is read, and no timer is left", async () => {
  const { time, store, queues, queue, sweep } = queuesOver();
  const first = deliveryOf(partnerId);
  queues.offer(first);
  queues.startHead(queue(""));
  store.rows = [deliveryOf(partnerId, { queue: origin })];
  store.dueForMs = -5_000;
  await sweep();
  queues.stop();
  queues.ended(first, "applied", 10);
  queues.wake(first);
  expect(time.waiting).toBe(0);
});

describe("outcomes are remembered", () => {
  test("for a read that began before them, however long it takes", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    store.rows = [first];
    queues.offer(first);
    queues.startHead(queue(""));
    store.whileReading = async () => {
      store.rows = [];
      queues.ended(first, "applied");
      time.ms += 60_000;
      queues.ended(deliveryOf(partnerId), "applied");
    };
    queues.wake(first);
    await time.pass(100);
    expect(store.reads.length).toBeGreaterThan(0);
    expect(queues.has(first.id)).toBe(false);
  });

  test("for a scan that began before them, too", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    queues.offer(first);
    queues.startHead(queue(""));
    store.scan = async () => {
      for (const ended of [first, deliveryOf(partnerId), deliveryOf(partnerId)]) {
        queues.ended(ended, "applied");
        time.ms += 60_000;
      }
      return { due: [{ dueAtUs: 1, id: first.id, delivery: first }], hasMore: false, nextInMs: undefined };
    };
    const { due } = await queues.scan({ partnerId, queue: "", after: undefined, rowsMax: 1 });
    queues.adopt({ partnerId, queue: "" }, due);
    expect(queues.has(first.id)).toBe(false);
  });

  test("not longer than that, although reads never pause", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    queues.offer(first);
    queues.startHead(queue(""));
    queues.ended(first, "applied");
    queues.offer(first);
    expect(queues.has(first.id)).toBe(false);
    store.whileReading = async () => {
      time.ms += 100;
      if (store.reads.length < 250) queues.wake({ partnerId, queue: `https://p${store.reads.length}.example` });
      if (store.reads.length !== 250) return;
      queues.ended(deliveryOf(partnerId), "applied");
      queues.offer(first);
    };
    queues.wake({ partnerId, queue: origin });
    await time.pass(100);
    expect(store.reads.length).toBeGreaterThanOrEqual(50);
    expect(queues.holds(first)).toBe(true);
  });
});

describe("a delivery that rests", () => {
  test("does not hide from the sweep what is due behind it", async () => {
    const { time, store, queues, sweep, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    store.rows = [first];
    queues.offer(first);
    const taken = queues.startHead(queue(""));
    if (taken !== undefined) queues.rest(taken, 30_000);
    const missed = deliveryOf(partnerId);
    store.rows = [first, missed];
    await sweep();
    await time.pass(100);
    expect(queues.has(missed.id)).toBe(true);
    expect(queues.has(first.id)).toBe(false);
  });

  test("uses no room, and is read again afterwards", async () => {
    const { time, store, queues, queue } = queuesOver({ limitsOf: () => ({ rowsMax: 4, mayRead: true }) });
    const rows = Array.from({ length: 6 }, () => deliveryOf(partnerId));
    store.rows = rows;
    queues.wake({ partnerId, queue: "" });
    await time.pass(100);
    for (const row of rows.slice(0, 4)) {
      expect(queues.startHead(queue(""))).toBe(row);
      queues.rest(row, 30_000);
    }
    await time.pass(1_000);
    expect([queues.startHead(queue("")), queues.startHead(queue(""))]).toEqual(rows.slice(4));
    expect(queues.startHead(queue(""))).toBeUndefined();
    for (const row of rows.slice(4)) queues.ended(row, "applied");
    store.rows = rows.slice(0, 4);
    await time.pass(30_000);
    expect(queues.startHead(queue(""))).toBe(rows[0]);
  });

  test("is read again after others, although its partner was unknown when its rest was over", async () => {
    let rowsMax: number | undefined = 8;
    const { time, store, queues, queue } = queuesOver({
      limitsOf: () => ({ rowsMax: rowsMax ?? 0, mayRead: rowsMax !== undefined }),
    });
    const [first, second] = [deliveryOf(partnerId), deliveryOf(partnerId)];
    store.rows = [first, second];
    queues.wake(first);
    await time.pass(100);
    queues.startHead(queue(""));
    expect(queues.startHead(queue(""))).toBe(second);
    queues.rest(second, 30_000);
    rowsMax = undefined;
    await time.pass(30_000);
    rowsMax = 8;
    queues.reconsider(partnerId);
    await time.pass(100);
    expect(queues.startHead(queue(""))).toBe(second);
  });

  test("is read again after a redelivery, which begins another round", async () => {
    const { time, store, queues, queue } = queuesOver();
    const first = deliveryOf(partnerId);
    queues.offer(first);
    queues.startHead(queue(""));
    queues.rest(first, 30_000);
    store.rows = [{ ...first, round: 1 }];
    queues.wake(first);
    await time.pass(100);
    expect(queue("").head?.round).toBe(1);
    const again = queues.startHead(queue(""));
    await time.pass(20_000);
    if (again !== undefined) queues.rest(again, 30_000);
    // The first rest is over.
    await time.pass(20_000);
    expect(queues.has(first.id)).toBe(false);
    await time.pass(20_000);
    expect(queues.has(first.id)).toBe(true);
  });
});

describe("the deliveries in memory", () => {
  const bytes = 1_000;
  const names = Array.from({ length: 40 }, (_, nth) => `https://p${nth}.example`);

  /** Reads rows of several queues; those that are started are accepted. */
  async function reading(rowsOfQueue: number, more: Partial<QueuesParts>) {
    const over = queuesOver({ limitsOf: () => ({ rowsMax: 20, mayRead: true }), ...more });
    const { store, queues, sweep, time } = over;
    store.rows = names.flatMap((queue) =>
      Array.from({ length: rowsOfQueue }, () => deliveryOf(partnerId, { queue, bytes })),
    );
    await sweep();
    await time.pass(100);
    const takeAll = () => {
      for (const queue of queues.queuesOf(partnerId)) {
        for (let row = queues.startHead(queue); row !== undefined; row = queues.startHead(queue)) {
          const taken = row;
          store.rows = store.rows.filter((one) => one !== taken);
          queues.ended(taken, "applied");
        }
      }
    };
    return { ...over, takeAll };
  }

  test.each([
    ["rows", { rowsMax: 50 }, 100],
    ["bytes", { bytesMax: 30 * bytes }, 60],
    ["bytes, where one row has more than all of them", { bytesMax: bytes / 2 }, 2],
  ])("is bounded by %s, however many queues there are, and all of it leaves", async (_, more, rowsAtMost) => {
    const { time, store, queues, sweep, takeAll } = await reading(30, more);
    for (let rounds = 0; rounds < 2_000 && store.rows.length > 0; rounds += 1) {
      expect(queues.rows).toBeLessThanOrEqual(rowsAtMost + 20);
      expect(queues.rows).toBeGreaterThan(0);
      expect(queues.bytes).toBe(queues.rows * bytes);
      takeAll();
      await sweep();
      await time.pass(100);
    }
    expect(store.rows).toEqual([]);
    expect([queues.rows, queues.bytes]).toEqual([0, 0]);
  });

  test("of a partner alone leave half of the bytes free, and one row to each other partner beyond every bound", () => {
    const { queues } = queuesOver({ bytesMax: 10 * bytes, limitsOf: () => ({ rowsMax: 20, mayRead: true }) });
    for (let offered = 0; offered < 20; offered += 1) queues.offer(deliveryOf(partnerId, { bytes }));
    expect(queues.rows).toBe(5);
    queues.offer(deliveryOf(newId<"partner">(), { bytes: 30 * bytes }));
    for (const other of [newId<"partner">(), newId<"partner">()]) {
      for (let offered = 0; offered < 2; offered += 1) queues.offer(deliveryOf(other, { bytes }));
      expect(queues.queuesOf(other)[0]?.rows).toBe(1);
    }
  });

  test("are read by statements for at most 64 queues, and about 512 rows", async () => {
    const { time, store, queues } = queuesOver({ rowsMax: 1e4, limitsOf: () => ({ rowsMax: 600, mayRead: true }) });
    const statements: number[][] = [];
    const read = store.read.bind(store);
    store.read = (reads) => {
      statements.push(reads.map((one) => one.rowsMax));
      return read(reads);
    };
    for (const queue of ["a", "b"]) queues.wake({ partnerId, queue });
    await time.pass(100);
    expect(statements).toEqual([[512], [512]]);
    statements.length = 0;
    const few = queuesOver({ limitsOf: () => ({ rowsMax: 4, mayRead: true }) });
    few.store.read = store.read;
    for (let nth = 0; nth < 70; nth += 1) few.queues.wake({ partnerId, queue: `${nth}` });
    await few.time.pass(100);
    expect(statements.map(({ length }) => length)).toEqual([64, 6]);
  });

  test("requests no more bytes at a time than there is room for", async () => {
    const { store } = await reading(1, { bytesMax: 30 * bytes });
    for (const { bytesMax, rowsMax } of store.reads) {
      expect(bytesMax).toBeLessThanOrEqual(Math.min(30 * bytes, rowsMax * 8_192));
      expect(bytesMax).toBeGreaterThan(0);
    }
  });
});

const attempt = (round: number, attemptsMade: number) => ({ id: newId<"notification">(), round, attemptsMade });

test("an outcome is known for its attempt and all earlier ones, not for a later attempt or round", () => {
  const outcomes = new RecentOutcomes(10);
  const one = attempt(1, 3);
  outcomes.add(one);
  expect(outcomes.knows(one)).toBe(true);
  expect(outcomes.knows({ ...one, attemptsMade: 2 })).toBe(true);
  expect(outcomes.knows({ ...one, round: 0, attemptsMade: 9 })).toBe(true);
  expect(outcomes.knows({ ...one, attemptsMade: 4 })).toBe(false);
  expect(outcomes.knows({ ...one, round: 2, attemptsMade: 0 })).toBe(false);
  expect(outcomes.knows(attempt(0, 0))).toBe(false);
});

test("an outcome is remembered for a period at least, and for two at most", () => {
  const outcomes = new RecentOutcomes(10);
  outcomes.forget(0, 0);
  const [first, second] = [attempt(0, 0), attempt(0, 0)];
  outcomes.add(first);
  outcomes.forget(9, 9);
  outcomes.add(second);
  outcomes.forget(10, 10);
  expect([first, second].map((one) => outcomes.knows(one))).toEqual([true, true]);
  outcomes.forget(19, 19);
  expect(outcomes.knows(second)).toBe(true);
  outcomes.forget(20, 20);
  expect([first, second].map((one) => outcomes.knows(one))).toEqual([false, false]);
});

test("outcomes that a running read may predate are remembered, however long it takes", () => {
  const outcomes = new RecentOutcomes(10);
  outcomes.forget(0, 0);
  const one = attempt(0, 0);
  outcomes.add(one);
  outcomes.forget(10, 5);
  outcomes.forget(20, 5);
  outcomes.forget(100, 5);
  expect(outcomes.knows(one)).toBe(true);
  outcomes.forget(110, 105);
  expect(outcomes.knows(one)).toBe(false);
});
