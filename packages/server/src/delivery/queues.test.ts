import { describe, expect, test } from "vitest";
import { type LeaseId, newId } from "../ids.ts";
import type { Partner } from "../partners/partner.ts";
import { shardOf } from "../shard.ts";
import type { Attempted } from "./attempting.ts";
import { closedCircuit } from "./circuit.ts";
import type { LoadedCircuit } from "./circuit-store.ts";
import { originQueue, urlQueue } from "./circuits.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "./delivery.fixture.ts";
import { Queues, type QueuesParts } from "./queues.ts";
import type { OwnedShard, ShardMap } from "./shard-store.ts";
import type { Delivery, DeliveryStore, PutOff, QueueHead, QueuePage, QueueRead } from "./store.ts";
import { DeliveryWorker } from "./worker.ts";

const partnerId = newId<"partner">();
const url = "https://partner.example/ipn";
const origin = originQueue(url);

/** A clock that advances on request. */
class Time {
  ms = 1_000;
  #timers: { readonly atMs: number; readonly work: () => void }[] = [];

  readonly clock = { nowMs: () => this.ms, monotonicMs: () => this.ms };

  readonly timers = {
    after: (ms: number, work: () => void) => {
      const timer = { atMs: this.ms + ms, work };
      this.#timers.push(timer);
      return () => void this.#timers.splice(this.#timers.indexOf(timer) >>> 0, 1);
    },
  };

  /** Runs everything that becomes due within `ms`, in order, with its consequences. */
  async pass(ms: number): Promise<void> {
    const untilMs = this.ms + ms;
    for (let steps = 0; steps < 5_000; steps += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      const next = this.#timers.toSorted((one, another) => one.atMs - another.atMs)[0];
      if (next === undefined || next.atMs > untilMs) break;
      this.#timers.splice(this.#timers.indexOf(next), 1);
      this.ms = Math.max(this.ms, next.atMs);
      next.work();
    }
    this.ms = untilMs;
  }
}

/** The pending rows, all of them due. */
class Pending {
  rows: Delivery[] = [];
  reads: QueueRead[] = [];
  /** How long they have been due. */
  dueForMs = 10_000;
  /** Runs while a statement reads. */
  whileReading: () => Promise<void> = async () => undefined;

  async read(reads: readonly QueueRead[]): Promise<readonly QueuePage[]> {
    this.reads.push(...reads);
    const pages = reads.map((read) => this.#page(read));
    await this.whileReading();
    return pages;
  }

  async heads(shards: readonly number[]): Promise<readonly QueueHead[]> {
    const firsts = new Map(this.rows.toReversed().map((row) => [`${row.partnerId} ${row.queue}`, row]));
    return [...firsts.values()]
      .filter((row) => shards.includes(shardOf(row.partnerId)))
      .map((row) => ({ ...headOf(row), dueInMs: -this.dueForMs }));
  }

  #page({ partnerId: of, queue, after, rowsMax }: QueueRead): QueuePage {
    const rows = this.rows.filter((row) => row.partnerId === of && row.queue === queue);
    const rest = rows.filter(({ id }) => after === undefined || id > after.id);
    const due = rest.slice(0, rowsMax).map((delivery) => ({ dueAtUs: 1, id: delivery.id, delivery }));
    return { due, hasMore: rest.length > rowsMax, nextInMs: undefined };
  }
}

function headOf({ partnerId: of, queue, id, round, attemptsMade }: Delivery) {
  return { partnerId: of, queue, id, round, attemptsMade };
}

function queuesOver(more: Partial<QueuesParts> = {}) {
  const time = new Time();
  const store = new Pending();
  const queues = new Queues({
    store,
    clock: time.clock,
    timers: time.timers,
    rowsMax: 100,
    bytesMax: 1e6,
    limitsOf: () => ({ rowsMax: 8, mayRead: true }),
    opensAtMs: () => Number.NEGATIVE_INFINITY,
    onReady: () => undefined,
    onReleased: () => undefined,
    onFollowing: () => undefined,
    onBehind: () => undefined,
    onTrouble: (error) => {
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
    expect(queues.startHead(queue(""))).toBe(again);
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

describe("what is read", () => {
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
    let opensAtMs: number | undefined;
    const { time, store, queues } = queuesOver({ opensAtMs: () => opensAtMs });
    const row = deliveryOf(partnerId);
    store.rows = [row];
    queues.wake(row);
    await time.pass(10_000);
    expect(store.reads).toEqual([]);
    opensAtMs = Number.NEGATIVE_INFINITY;
    queues.reconsider(partnerId);
    await time.pass(100);
    expect(queues.has(row.id)).toBe(true);
  });

  test("is nothing for a partner that is not owned now", async () => {
    let rows: number | undefined;
    const { time, store, queues } = queuesOver({
      limitsOf: () => ({ rowsMax: rows ?? 0, mayRead: rows !== undefined }),
    });
    const row = deliveryOf(partnerId);
    store.rows = [row];
    queues.wake(row);
    await time.pass(10_000);
    expect(store.reads).toEqual([]);
    rows = 8;
    queues.reconsider(partnerId);
    await time.pass(100);
    expect(queues.has(row.id)).toBe(true);
  });
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
  });
});

describe("what is in memory", () => {
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

  test("requests no more bytes at a time than there is room for", async () => {
    const { store } = await reading(1, { bytesMax: 30 * bytes });
    for (const { bytesMax, rowsMax } of store.reads) {
      expect(bytesMax).toBeLessThanOrEqual(Math.min(30 * bytes, rowsMax * 8_192));
      expect(bytesMax).toBeGreaterThan(0);
    }
  });
});

const leaseId = newId<"lease">() as LeaseId;
const open: LoadedCircuit = {
  partnerId,
  queue: origin,
  circuit: { state: "open", failures: 5, probes: 0, probeInMs: 60_000, lastReason: "timeout" },
  controlNo: 0,
};

/** A worker that owns every shard from its first tick on. */
async function workerOver(more: Partial<DeliveryStore> = {}) {
  const time = new Time();
  const pending = new Pending();
  const begun: Delivery[] = [];
  const troubles: string[] = [];
  const settings = { maxInFlight: 2, maxPerSecond: null, callBackUrl: url, retry: [5, 60] };
  const partner = { id: partnerId, state: "active", settings, pauses: [] } as unknown as Partner;
  const circuits = {
    load: async (): Promise<readonly LoadedCircuit[]> => [],
    loadChangedByHand: async (): Promise<readonly LoadedCircuit[]> => [],
  };
  let answer: (attempted: Attempted | { readonly putOffMs: number }) => void = () => undefined;
  let mine: readonly OwnedShard[] = [];
  const worker = new DeliveryWorker({
    store: {
      read: (reads) => pending.read(reads),
      heads: (shards) => pending.heads(shards),
      preceding: async () => [],
      record: async () => "applied",
      putOff: async () => undefined,
      setAside: async () => undefined,
      parkOverdue: async () => ({ parked: 0, after: undefined }),
      ...more,
    },
    shards: {
      map: async (): Promise<ShardMap> => ({
        workers: [{ leaseId, ageMs: 60_000, owned: mine.length }],
        mine,
        free: 256 - mine.length,
      }),
      claim: async () => {
        mine = Array.from({ length: 256 }, (_, shard) => ({ shard, epoch: 1 }));
        return mine;
      },
      release: async () => {
        mine = [];
      },
    },
    circuits,
    lease: { current: () => leaseId, remainingMs: () => 5_000 },
    partners: { peek: () => partner },
    attempt: (delivery) => {
      begun.push(delivery);
      return new Promise((resolve) => {
        answer = resolve;
      });
    },
    clock: time.clock,
    timers: time.timers,
    random: () => 0.5,
    slotsMax: 8,
    bytesInFlightMax: 1e6,
    attemptTimeoutMs: 15_000,
    onTrouble: (message) => void troubles.push(message),
  });
  worker.start();
  await time.pass(100);
  return {
    time,
    pending,
    worker,
    begun,
    troubles,
    circuits,
    answer: (one: Parameters<typeof answer>[0]) => answer(one),
  };
}

describe("a worker", () => {
  const broken = async () => {
    throw new Error("the row cannot be written");
  };
  const failed = { attempt: failedAttempt, next: { kind: "retry", delayMs: 5_000 } } as const;

  test.each([
    ["its putting off failed", { putOff: broken }, { putOffMs: 1_000 }, 100],
    ["its outcome could not be stored", { record: broken }, failed, 31_000],
  ])("reads a delivery again without a sweep when %s", async (_, store, attempted, afterMs) => {
    const { time, pending, worker, begun, troubles, answer } = await workerOver({ ...store, heads: async () => [] });
    const row = deliveryOf(partnerId);
    pending.rows = [row];
    worker.offer([row], time.ms);
    await time.pass(10);
    expect(begun).toEqual([row]);
    answer(attempted);
    await time.pass(afterMs);
    expect(begun).toEqual([row, row]);
    expect(troubles.length).toBeGreaterThan(0);
  });

  test("reads a delivery again without a sweep if it could not be set aside", async () => {
    const { time, pending, worker, begun, troubles, answer } = await workerOver({
      setAside: broken,
      heads: async () => [],
    });
    const rows = [1, 2, 3].map(() => deliveryOf(partnerId, { queue: origin, callBackUrl: url }));
    worker.offer(rows.slice(0, 1), time.ms);
    await time.pass(10);
    const gone = { ...failedAttempt, httpStatus: 410, reason: "gone" } as const;
    answer({ attempt: { ...gone, url }, next: { kind: "retry", delayMs: 60_000 } });
    await time.pass(10);
    pending.rows = rows.slice(1, 2);
    worker.offer(rows.slice(1, 2), time.ms);
    await time.pass(100);
    expect(begun).toHaveLength(1);
    expect(troubles[0]).toBe("a delivery could not be set aside");
    expect(pending.reads.length).toBeGreaterThan(0);
  });

  test("reads a delivery that is offered long after it was written, instead of sending it again", async () => {
    const { time, pending, worker, begun } = await workerOver();
    const [late, inTime] = [deliveryOf(partnerId), deliveryOf(partnerId)];
    worker.offer([late], time.ms - 5_001);
    await time.pass(100);
    expect(pending.reads).toHaveLength(1);
    expect(begun).toEqual([]);
    worker.offer([inTime], time.ms - 5_000);
    await time.pass(100);
    expect(begun).toEqual([inTime]);
  });

  test("reads nothing for an endpoint while it is probed", async () => {
    const { time, pending, worker, begun, circuits, answer } = await workerOver();
    const rows = Array.from({ length: 20 }, () => deliveryOf(partnerId));
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 0 } }];
    worker.leaseLost();
    worker.tick();
    pending.rows = rows;
    await time.pass(2_000);
    expect(begun).toHaveLength(1);
    const before = pending.reads.length;
    await time.pass(10_000);
    expect(pending.reads.length).toBe(before);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    pending.rows = rows.slice(1);
    await time.pass(100);
    expect(begun).toHaveLength(3);
  });

  test("keeps no queue whose URL is gone, parks its overdue rows, and reads it once it is closed", async () => {
    const looked: string[] = [];
    const name = urlQueue(url);
    const { time, pending, worker, begun, circuits } = await workerOver({
      parkOverdue: async ({ queue }) => {
        looked.push(queue);
        return { parked: 0, after: undefined };
      },
    });
    const gone = { state: "gone", failures: 0, probes: 0, probeInMs: null, lastReason: "gone" } as const;
    circuits.load = async () => [{ partnerId, queue: name, circuit: gone, controlNo: 0 }];
    worker.leaseLost();
    pending.rows = [deliveryOf(partnerId, { queue: name, callBackUrl: url })];
    await time.pass(25_000);
    expect(begun).toEqual([]);
    expect(worker.queues.partners()).toEqual([]);
    expect(looked.length).toBeGreaterThanOrEqual(2);
    expect(new Set(looked)).toEqual(new Set([name]));
    circuits.loadChangedByHand = async () => [{ partnerId, queue: name, circuit: closedCircuit, controlNo: 1 }];
    worker.circuitsChanged();
    await time.pass(2_000);
    expect(begun).toEqual(pending.rows);
  });

  test("sweeps after ten times as long as the last sweep took, whatever hints arrive", async () => {
    let sweeps = 0;
    const over: { time?: Time } = {};
    const { time, worker } = await workerOver({
      heads: async (shards) => {
        if (shards.length === 256) sweeps += 1;
        if (over.time !== undefined) over.time.ms += shards.length === 256 ? 900 : 1;
        return [];
      },
    });
    over.time = time;
    await time.pass(1_500);
    const before = sweeps;
    for (let nth = 0; nth < 6; nth += 1) {
      worker.tick();
      worker.wake([{ partnerId }]);
      await time.pass(1_000);
    }
    expect(sweeps).toBe(before);
    await time.pass(10_000);
    expect(sweeps).toBeGreaterThan(before);
  });

  test("puts deliveries on the wire off when it releases shards, and reads nothing more", async () => {
    const putOffs: { readonly id: string; readonly untilMs: number }[] = [];
    let nowMs = () => 0;
    const over = await workerOver({
      putOff: async (all: readonly PutOff[]) => {
        for (const { id, delayMs } of all) putOffs.push({ id, untilMs: nowMs() + delayMs });
      },
    });
    const rows = Array.from({ length: 40 }, () => deliveryOf(partnerId));
    nowMs = () => over.time.ms;
    over.pending.rows = rows;
    over.worker.wake([{ partnerId, queue: "" }]);
    await over.time.pass(10);
    const deadlineMs = over.time.ms + 15_000;
    expect(over.begun).toHaveLength(2);
    await over.time.pass(3_000);
    const stopped = over.worker.stop(1_000);
    await over.time.pass(1_100);
    const before = over.pending.reads.length;
    over.pending.rows = [];
    over.worker.partnerChanged(partnerId);
    over.worker.queues.queuesOf(partnerId)[0]?.forgetReady();
    over.worker.partnerChanged(partnerId);
    await over.time.pass(1_000);
    expect(await stopped).toBe(2);
    expect(over.pending.reads.length).toBe(before);
    expect(putOffs.map(({ id }) => id)).toEqual(over.begun.map(({ id }) => id));
    for (const { untilMs } of putOffs) expect(untilMs).toBeGreaterThan(deadlineMs);
  });

  test("uses the circuits that were loaded when it claimed the shard, not earlier ones", async () => {
    const { time, worker, begun, circuits } = await workerOver();
    const late = Promise.withResolvers<readonly LoadedCircuit[]>();
    circuits.loadChangedByHand = () => late.promise;
    worker.circuitsChanged();
    await time.pass(10);
    worker.leaseLost();
    circuits.load = async () => [open];
    late.resolve([{ ...open, circuit: { ...open.circuit, state: "closed", failures: 1, probeInMs: null } }]);
    await time.pass(2_000);
    expect(worker.status.shards).toBe(256);
    worker.offer([deliveryOf(partnerId)], time.ms);
    await time.pass(100);
    expect(begun).toEqual([]);
  });
});
