import { describe, expect, onTestFinished, test, vi } from "vitest";
import { type LeaseId, newId, type PartnerId, shardCount, shardOf, type TransactionId } from "../../ids.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "../delivery.fixture.ts";
import type { Delivery } from "../delivery.ts";
import { closedCircuit } from "../limits/circuit.ts";
import type { LoadedCircuit } from "../limits/circuits.ts";
import { originCircuit, urlCircuit } from "../limits/circuits.ts";
import type { Pending, Time } from "../pending.fixture.ts";
import { Queues } from "../queues/queues.ts";
import type { DeliveryStore, Postponement } from "../store.ts";
import { next, open, partnerId, url, workerOver } from "./worker.fixture.ts";

const goneCircuit = { state: "gone", failures: 0, probes: 0, probeInMs: null, lastReason: "gone" } as const;

describe("partners that are not sent to", () => {
  const heldMs = 5_000;
  const mayLeave: Partial<DeliveryStore> = {
    preceding: async (asked) => asked.map(() => ({ after: undefined, ageMs: 0 })),
  };
  const offered = async (state: "paused" | "unknown", more: Partial<Delivery> = {}, afterMs = heldMs) => {
    const made = await workerOver(mayLeave, { slotsMax: 16 });
    const rows = Array.from({ length: 100 }, () => newId<"partner">()).flatMap((id) => {
      made.others.set(id, state);
      return [1, 2, 3, 4].map(() => deliveryOf(id, more));
    });
    made.pending.rows = rows;
    for (const row of rows) made.worker.offer(row, made.time.ms);
    await made.time.pass(afterMs);
    return { ...made, rows };
  };

  test.each(["paused", "unknown"] as const)("take no memory from the others while they are %s", async (state) => {
    const { time, worker, begun } = await offered(state);
    expect(worker.status).toMatchObject({ rows: 0, rowsBytes: 0 });
    const theirs = [1, 2, 3, 4].map(() => deliveryOf(partnerId));
    for (const row of theirs) worker.offer(row, time.ms);
    await time.pass(10);
    expect(begun).toEqual(theirs);
  });

  test("stay in memory until the second tick while they are unknown: they may arrive until then", async () => {
    const { worker, time, pending } = await offered("unknown", {}, 1_000);
    expect(worker.status.rows).toBeGreaterThan(0);
    await time.pass(1_000);
    expect(worker.status.rows).toBe(0);
    expect(pending.reads).toEqual([]);
  });

  test("take no memory when they are paused, also while all that they may have in flight is", async () => {
    const { time, worker, others } = await workerOver();
    for (let nth = 0; nth < 4; nth += 1) worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    others.set(partnerId, "paused");
    worker.partnerChanged(partnerId);
    expect(worker.status).toMatchObject({ slots: 2, rows: 2 });
  });

  test.each(["paused", "unknown"] as const)("are sent everything when they are no longer %s", async (state) => {
    const { time, worker, others, rows, begun } = await offered(state);
    const [first] = rows;
    if (first === undefined) throw new Error("none was made");
    others.delete(first.partnerId);
    worker.partnerChanged(first.partnerId);
    await time.pass(10);
    expect(begun).toEqual(rows.slice(0, 4));
  });

  test.each(["paused", "unknown"] as const)(
    "have followers that do not stay in memory while they are %s",
    async (state) => {
      const { worker } = await offered(state, { follows: true });
      expect(worker.status).toMatchObject({ rows: 0, rowsBytes: 0 });
    },
  );
});

describe("a worker", () => {
  const broken = async () => {
    throw new Error("the row cannot be written");
  };
  const failed = { attempt: failedAttempt, next: { kind: "retry", delayMs: 5_000 } } as const;

  test.each([
    ["its postponement failed", { postpone: broken }, { postponeMs: 1_000 }, 100],
    ["its outcome could not be stored", { record: broken }, failed, 31_000],
  ])("reads a delivery again without a sweep when %s", async (_, store, attempted, afterMs) => {
    const { time, pending, worker, begun, troubles, answer } = await workerOver({ ...store, heads: async () => [] });
    const row = deliveryOf(partnerId);
    pending.rows = [row];
    worker.offer(row, time.ms);
    await time.pass(10);
    expect(begun).toEqual([row]);
    answer(attempted);
    await time.pass(afterMs);
    expect(begun).toEqual([row, row]);
    expect(troubles.length).toBeGreaterThan(0);
    expect(worker.status.unrecorded).toBe(0);
  });

  test.each([
    ["whose URL cannot be read", { callBackUrl: "not a URL" }],
    ["that an error keeps from being handled", { transactionId: "broken" as TransactionId }],
  ])("reports a notification %s, and sends the others", async (_, more) => {
    const { time, worker, begun, faults, shards, answer } = await workerOver();
    const [bad, good] = [deliveryOf(partnerId, more), deliveryOf(partnerId)];
    worker.offer(bad, time.ms);
    worker.offer(good, time.ms);
    await time.pass(10);
    expect(begun).toContain(good);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(faults).toEqual([bad]);
    expect(worker.status.slots).toBe(0);
    // Nothing is left to wait for.
    void worker.stop(60_000);
    await time.pass(10);
    expect(shards.mine).toEqual([]);
  });

  test("reads a delivery that is offered long after it was written, instead of sending it again", async () => {
    const { time, pending, worker, begun } = await workerOver();
    const [late, inTime] = [deliveryOf(partnerId), deliveryOf(partnerId)];
    worker.offer(late, time.ms - 5_001);
    await time.pass(100);
    expect(pending.reads).toHaveLength(1);
    expect(begun).toEqual([]);
    worker.offer(inTime, time.ms - 5_000);
    await time.pass(100);
    expect(begun).toEqual([inTime]);
  });

  test("keeps an error of its own from the directory of partners", async () => {
    const { worker, troubles } = await workerOver();
    const reconsidering = vi.spyOn(Queues.prototype, "reconsider").mockImplementation(() => {
      throw new Error("a bug");
    });
    onTestFinished(() => reconsidering.mockRestore());
    worker.partnerChanged(partnerId);
    expect(troubles).toEqual(["a partner's deliveries could not be reconsidered"]);
  });

  test("starts a few deliveries in each turn of the event loop", async () => {
    const { time, worker, begun } = await workerOver({}, { slotsMax: 256 });
    const rows = Array.from({ length: 40 }, () => deliveryOf(partnerId));
    for (const row of rows) worker.offer(row, time.ms);
    await new Promise((resolve) => setImmediate(resolve));
    worker.offer(deliveryOf(newId<"partner">()), time.ms);
    await new Promise((resolve) => setImmediate(resolve));
    expect(begun).toHaveLength(32);
    await time.pass(0);
    expect(begun).toEqual(expect.arrayContaining(rows));
  });

  test("settles its shards one round at a time, and every second round while nothing changes", async () => {
    const { time, worker, pending } = await workerOver();
    for (let nth = 0; nth < 4; nth += 1) worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(5_000);
    const running = Promise.withResolvers<void>();
    const tick = vi.spyOn(worker.ownership, "tick").mockReturnValueOnce(running.promise);
    for (let times = 0; times < 3; times += 1) worker.tick();
    await time.pass(3_000);
    expect(tick).toHaveBeenCalledTimes(1);
    running.resolve();
    await time.pass(10);
    expect(tick).toHaveBeenCalledTimes(2);
    await time.pass(10_000);
    expect(tick).toHaveBeenCalledTimes(2 + 5);
    // What waits for a slot meanwhile stays in memory.
    expect([worker.status.rows, pending.reads]).toEqual([4, []]);
  });

  test("leaves what became due just now to its hint, and reads it after one that names no queue", async () => {
    const { time, pending, worker, begun } = await workerOver();
    pending.dueForMs = 100;
    pending.rows = [deliveryOf(partnerId)];
    await time.pass(12_000);
    expect(begun).toEqual([]);
    worker.wake({ partnerId });
    await time.pass(10);
    expect(begun).toEqual(pending.rows);
  });

  test("seals at most 256 KiB in each turn of the event loop, and a larger content alone", async () => {
    const { time, worker, begun, begunByTurn } = await workerOver({}, { slotsMax: 64, bytesInFlightMax: 1e8 });
    const kib = (size: number) => deliveryOf(partnerId, { bytes: size * 1_024 });
    const rows = [kib(200), kib(56), kib(4_096), kib(1), kib(255), kib(1)];
    for (const row of rows) worker.offer(row, time.ms);
    await time.pass(0);
    expect(begunByTurn).toEqual([2, 3, 5]);
    expect(begun).toEqual(rows);
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

  test("sends on at once where an attempt that was in flight closes a circuit that tripped since", async () => {
    const { time, pending, worker, begun, circuits, answers } = await workerOver();
    circuits.load = async () => [{ ...open, circuit: { ...closedCircuit, failures: 4 } }];
    worker.leaseLost();
    pending.rows = [deliveryOf(partnerId), deliveryOf(partnerId)];
    await time.pass(2_000);
    answers[0]?.({ attempt: failedAttempt, next });
    // In another queue of its endpoint.
    const other = deliveryOf(partnerId, { queue: originCircuit(url), callBackUrl: `${url}/own` });
    pending.rows = [other];
    worker.wake(other);
    await time.pass(100);
    expect(begun).toHaveLength(2);
    answers[1]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(100);
    expect(begun.at(-1)).toBe(other);
  });

  test("probes a tripped endpoint again after a probe that was not sent", async () => {
    const { time, pending, worker, begun, circuits, answer } = await workerOver();
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 0 } }];
    worker.leaseLost();
    pending.rows = [deliveryOf(partnerId), deliveryOf(partnerId)];
    await time.pass(2_000);
    expect(begun).toHaveLength(1);
    answer({ postponeMs: 1_000 });
    await time.pass(2_000);
    expect(begun).toHaveLength(2);
  });

  test("probes a tripped endpoint again after a probe that an error kept from being handled", async () => {
    const { time, pending, worker, begun, circuits, faults } = await workerOver();
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 0 } }];
    worker.leaseLost();
    const [bad, good] = [deliveryOf(partnerId, { transactionId: "broken" as TransactionId }), deliveryOf(partnerId)];
    pending.rows = [bad, good];
    await time.pass(2_000);
    expect([faults, begun]).toEqual([[bad], [good]]);
  });

  test("sweeps on after its circuits could not be read again", async () => {
    const { time, pending, worker, begun, circuits, troubles } = await workerOver();
    circuits.loadChangedByHand = () => Promise.reject(new Error("the database is away"));
    worker.circuitsChanged();
    await time.pass(10);
    circuits.loadChangedByHand = async () => [];
    pending.rows = [deliveryOf(partnerId)];
    await time.pass(5_000);
    expect([troubles, begun]).toEqual([["circuits could not be read again"], pending.rows]);
  });

  test("reads no queue whose URL is gone, parks its overdue rows, and reads it once it is closed", async () => {
    const parked: string[] = [];
    const queue = urlCircuit(url);
    const { time, pending, worker, begun, circuits, overdue } = await workerOver({
      park: async (all, reason) => parked.push(...all.map(({ id }) => `${id} ${reason}`)),
    });
    circuits.load = async () => [{ partnerId, queue, circuit: goneCircuit, controlNo: 0 }];
    worker.leaseLost();
    const [over, young] = [deliveryOf(partnerId, { scheduleStartMs: -65_000 }), deliveryOf(partnerId)];
    pending.rows = [over, young];
    await time.pass(12_000);
    expect(begun).toEqual([]);
    expect(pending.reads).toEqual([]);
    expect(parked).toEqual([`${over.id} gone`]);
    expect(overdue).toEqual([1]);
    pending.rows = [young];
    await time.pass(20_000);
    expect(pending.scans.length).toBeGreaterThanOrEqual(2);
    circuits.loadChangedByHand = async () => [{ partnerId, queue, circuit: closedCircuit, controlNo: 1 }];
    worker.circuitsChanged();
    await time.pass(2_000);
    expect(begun).toEqual([young]);
  });

  test("parks nothing of a partner that is paused, and looks at the others", async () => {
    const parked: string[] = [];
    const { time, pending, worker, circuits, others, troubles } = await workerOver({
      park: async (all) => parked.push(...all.map(({ id }) => id)),
    });
    const rows = [newId<"partner">(), partnerId].map((id) => deliveryOf(id, { scheduleStartMs: -65_000 }));
    const gone = { queue: urlCircuit(url), circuit: goneCircuit, controlNo: 0 };
    circuits.load = async () => rows.map((row) => ({ ...gone, partnerId: row.partnerId }));
    others.set(partnerId, "paused");
    worker.leaseLost();
    pending.rows = rows;
    await time.pass(12_000);
    expect([parked, troubles]).toEqual([[rows[0]?.id], []]);
  });

  test("parks nothing that is on the wire, although its schedule is over and its endpoint was tripped since", async () => {
    const parked: unknown[] = [];
    const { time, pending, worker, begun, circuits } = await workerOver({ park: async (all) => parked.push(...all) });
    pending.rows = [deliveryOf(partnerId, { scheduleStartMs: -65_000 })];
    worker.wake({ partnerId, queue: "" });
    await time.pass(10);
    circuits.loadChangedByHand = async () => [{ ...open, controlNo: 1 }];
    worker.circuitsChanged();
    await time.pass(12_000);
    expect(pending.scans).not.toEqual([]);
    expect([begun, parked]).toEqual([pending.rows, []]);
  });

  const tills = "https://tills.example/ipn";
  const tripped = { ...open, queue: originCircuit(tills) };

  test("looks the URL up when the attempt begins: a change moves no row, and a shut one blocks nobody", async () => {
    const postponed: Postponement[] = [];
    const parked: string[] = [];
    const { time, pending, worker, begun, circuits } = await workerOver(
      {
        async postpone(all) {
          postponed.push(...all);
          await broken();
        },
        park: async (all) => parked.push(...all.map(({ id }) => id)),
      },
      { callBackUrlByCommand: { SALE: tills } },
    );
    circuits.load = async () => [tripped];
    worker.leaseLost();
    await time.pass(2_000);
    const scheduleStartMs = time.ms - 40_000;
    const [sale, other] = [deliveryOf(partnerId, { scheduleStartMs }), deliveryOf(partnerId, { command: "VOID" })];
    const over = deliveryOf(partnerId, { scheduleStartMs: time.ms - 65_000 });
    for (const row of [sale, over, other]) worker.offer(row, time.ms);
    await time.pass(100);
    expect(begun).toEqual([other]);
    expect(postponed).toEqual([expect.objectContaining({ id: sale.id, delayMs: 4_000 })]);
    expect(parked).toEqual([over.id]);
    // It could not be postponed: it is read again, and its schedule is over by then.
    pending.rows = [sale];
    await time.pass(32_000);
    expect(parked).toContain(sale.id);
  });

  test("keeps nothing in memory that it postponed or parked, and reads it again when it is due", async () => {
    const { time, pending, worker, circuits, overdue } = await workerOver(
      {},
      { callBackUrlByCommand: { SALE: tills } },
    );
    circuits.load = async () => [tripped];
    worker.leaseLost();
    await time.pass(2_000);
    for (const ageMs of [40_000, 65_000])
      worker.offer(deliveryOf(partnerId, { scheduleStartMs: time.ms - ageMs }), time.ms);
    await time.pass(100);
    expect([worker.status.rows, overdue]).toEqual([0, [1]]);
    await time.pass(3_800);
    expect(pending.reads).toEqual([]);
    await time.pass(200);
    expect(pending.reads).toHaveLength(1);
  });

  test("sends what has another URL by now from the queue of an endpoint that accepts nothing", async () => {
    const { time, pending, worker, begun, circuits, answer } = await workerOver(
      {},
      { callBackUrlByCommand: { SALE: tills } },
    );
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 1e9 } }];
    worker.leaseLost();
    const commandOf = (nth: number) => (nth < 598 ? "VOID" : "SALE");
    const rows = Array.from({ length: 600 }, (_, nth) => deliveryOf(partnerId, { command: commandOf(nth) }));
    pending.rows = rows;
    await time.pass(12_000);
    expect(begun).toEqual(rows.slice(598));
    answer({ attempt: failedAttempt, next: { kind: "retry", delayMs: 5_000 } });
    await time.pass(25_000);
    expect(begun.slice(2)).toEqual([rows[599]]);
    expect(pending.reads).toEqual([]);
  });

  test("scans all of a shut queue until it has nothing for other URLs, then a page at a time", async () => {
    const callBackUrlByCommand: Record<string, string> = {};
    const { time, pending, worker, circuits } = await workerOver({}, { callBackUrlByCommand });
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 1e9 } }];
    worker.leaseLost();
    pending.rows = Array.from({ length: 1_200 }, () => deliveryOf(partnerId, { command: "VOID" }));
    await time.pass(12_000);
    // As long as all commands have one URL.
    expect(pending.scans.splice(0)).toHaveLength(1);
    callBackUrlByCommand["SALE"] = tills;
    await time.pass(11_000);
    expect(pending.scans).toHaveLength(3);
    await time.pass(11_000);
    expect(pending.scans).toHaveLength(6);
    await time.pass(22_000);
    expect(pending.scans.slice(6).map(({ after }) => after?.id)).toEqual([undefined, pending.rows[499]?.id]);
    await time.pass(60_000);
    // Six rounds, and one of them scans the whole queue: some may be due again.
    expect(pending.scans).toHaveLength(8 + 5 + 3);
    callBackUrlByCommand["REFUND"] = tills;
    await time.pass(11_000);
    expect(pending.scans).toHaveLength(8 + 5 + 3 + 3);
  });

  test("sends what version 0.1.0 put into a queue of its own, because its URL was gone", async () => {
    const own = "https://till.example/ipn";
    const { time, pending, worker, begun, circuits } = await workerOver();
    circuits.load = async () => [{ partnerId, queue: urlCircuit(own), circuit: goneCircuit, controlNo: 0 }];
    worker.leaseLost();
    const aside = deliveryOf(partnerId, { callBackUrl: own, queue: urlCircuit(own) });
    pending.rows = [aside];
    await time.pass(2_000);
    expect(begun).toEqual([aside]);
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
      worker.wake({ partnerId });
      await time.pass(1_000);
    }
    expect(sweeps).toBe(before);
    await time.pass(10_000);
    expect(sweeps).toBeGreaterThan(before);
  });

  test.each([1, 2, 4])("sweeps every shard that it owns, in %i homes", async (homes) => {
    const { time, pending, begun } = await workerOver({}, { homes, slotsMax: 2 * shardCount });
    const partnerOf = (shard: number) => `${partnerId.slice(0, -2)}${shard.toString(16).padStart(2, "0")}` as PartnerId;
    const shards = Array.from({ length: shardCount }, (_, shard) => shard);
    pending.rows = shards.map((shard) => deliveryOf(partnerOf(shard)));
    await time.pass(5_000);
    expect(begun.map((delivery) => shardOf(delivery.partnerId)).toSorted((a, b) => a - b)).toEqual(shards);
  });

  test("knows nothing of an earlier ownership: what was tripped then may be closed by another owner", async () => {
    const { time, pending, worker, begun, circuits } = await workerOver();
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 1e9 } }];
    worker.leaseLost();
    pending.rows = [deliveryOf(partnerId)];
    await time.pass(12_000);
    expect(begun).toEqual([]);
    circuits.load = async () => [];
    worker.leaseLost();
    await time.pass(12_000);
    expect(begun).toEqual(pending.rows);
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
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(100);
    expect(begun).toEqual([]);
  });
});

describe("a partner's rate, when its shard comes back", () => {
  const inFirstShard = `${partnerId.slice(0, -2)}00` as PartnerId;
  const perSecond = 4;
  const [floor, beats] = [shardCount / 2, 60];
  type Made = Awaited<ReturnType<typeof workerOver>>;
  const losses: Readonly<Record<string, (made: Made) => Promise<void>>> = {
    "the lease was lost": async ({ worker, time }) => {
      worker.leaseLost();
      worker.tick();
      await time.pass(1);
    },
    "another worker owned it between two looks": async ({ worker, shards, time }) => {
      shards.mine = shards.mine.map(({ shard, epoch }) => ({ shard, epoch: epoch + 2 }));
      worker.tick();
      await time.pass(1);
    },
    "it was released to another worker": async ({ worker, shards, time }) => {
      shards.others = [{ leaseId: newId<"lease">() as LeaseId, beats, owned: floor - 8 }];
      worker.tick();
      await time.pass(600);
      expect(worker.ownership.epochOf(inFirstShard)).toBeUndefined();
      shards.others = [];
      worker.tick();
      await time.pass(1);
    },
  };

  test.each(Object.keys(losses))("begins without a token: %s", async (how) => {
    const made = await workerOver({}, { slotsMax: 64, maxPerSecond: perSecond });
    const { time, worker, begun, answer } = made;
    await time.pass(5_000);
    worker.offer(deliveryOf(inFirstShard), time.ms);
    await time.pass(3_000);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(2_000);
    expect(begun).toHaveLength(1);
    const epoch = worker.ownership.epochOf(inFirstShard);
    await losses[how]?.(made);
    expect(worker.ownership.epochOf(inFirstShard)).toBeDefined();
    if (how !== "the lease was lost") expect(worker.ownership.epochOf(inFirstShard)).not.toBe(epoch);
    for (let nth = 0; nth < 2 * perSecond; nth += 1) worker.offer(deliveryOf(inFirstShard), time.ms);
    await time.pass(200);
    expect(begun).toHaveLength(1);
    await time.pass(1_000);
    expect(begun).toHaveLength(1 + perSecond);
  });
});

describe("a home that is away", () => {
  const partnerAt = (shard: string) => `${partnerId.slice(0, -2)}${shard}` as PartnerId;
  const here = partnerAt("01");
  const there = partnerAt("ff");
  const rowOf = (of: PartnerId, more: Partial<Delivery> = {}) => deliveryOf(of, more);
  const answers = {
    "refuses connections": () => Promise.reject(new Error("connect ECONNREFUSED")),
    "answers nothing": () => new Promise<never>(() => undefined),
  };

  test.each(["refuses connections", "answers nothing"] as const)("delays no other if it %s", async (how) => {
    let isAway = false;
    const over: { pending?: Pending } = {};
    /** One statement about all of these fails if a part of it does. */
    const about = async <T>(shards: readonly number[], answer: () => T | Promise<T>): Promise<T> =>
      isAway && shards.some((shard) => shard >= 128) ? answers[how]() : answer();
    const shardsOf = (some: readonly { readonly partnerId: PartnerId }[]) => some.map((one) => shardOf(one.partnerId));
    const { time, worker, begun, circuits, pending, answer } = await workerOver(
      {
        read: (reads) => about(shardsOf(reads), () => over.pending?.read(reads) ?? []),
        heads: (shards) => about(shards, () => over.pending?.heads(shards) ?? []),
        preceding: (all) => about(shardsOf(all), () => all.map(() => ({ after: undefined, ageMs: 0 }))),
      },
      { homes: 2 },
    );
    over.pending = pending;
    circuits.loadChangedByHand = (shards) => about(shards, () => []);
    circuits.load = (shards) => about(shards, () => []);
    isAway = true;
    // Read after a hint, beside one of the home that is away; the second one follows another.
    pending.rows = [rowOf(here), rowOf(here, { follows: true }), rowOf(there), rowOf(there, { follows: true })];
    worker.offer(rowOf(there, { follows: true }), time.ms);
    for (const partnerId of [there, here]) worker.wake({ partnerId, queue: "" });
    await time.pass(500);
    expect(begun.map((one) => one.partnerId)).toEqual([here, here]);
    // Found by the sweep alone, after the shards were handed over.
    worker.leaseLost();
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    pending.rows = [rowOf(here), rowOf(there)];
    await time.pass(8_000);
    expect(begun).toHaveLength(3);
    expect(begun[2]).toBe(pending.rows[0]);
    if (how === "answers nothing") return;
    isAway = false;
    await time.pass(5_000);
    expect(begun.at(-1)?.partnerId).toBe(there);
  });

  test("has its share of unrecorded outcomes, and the others send on", async () => {
    const recorded = Promise.withResolvers<"applied">();
    const { time, worker, begun, pending, answers } = await workerOver(
      { record: ({ partnerId: of }) => (of === here ? Promise.resolve("applied") : recorded.promise) },
      { homes: 2 },
    );
    // More than one: each has a few rows in memory.
    const partners = Array.from({ length: 8 }, () => `${newId().slice(0, -2)}ff` as PartnerId);
    pending.rows = partners.flatMap((of) => Array.from({ length: 8 }, () => rowOf(of)));
    for (const of of partners) worker.wake({ partnerId: of, queue: "" });
    for (let rounds = 0; rounds < 40; rounds += 1) {
      await time.pass(10);
      for (const answer of answers.splice(0)) answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    }
    const before = begun.length;
    expect(before).toBeLessThan(20);
    const row = rowOf(here);
    worker.offer(row, time.ms);
    await time.pass(10);
    expect(begun.at(-1)).toBe(row);
    recorded.resolve("applied");
    await time.pass(1_000);
    expect(begun.length).toBeGreaterThan(before + 1);
  });
});
