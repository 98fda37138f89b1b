import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type LeaseId, newId, type PartnerId, shardCount, shardOf, type TransactionId } from "../../ids.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "../delivery.fixture.ts";
import type { Delivery } from "../delivery.ts";
import { Circuits, originCircuit } from "../limits/circuits.ts";
import { Queues } from "../queues/queues.ts";
import type { Postponement } from "../store.ts";
import { next, open, partnerId, url, workerOver } from "./worker.fixture.ts";

type Made = Awaited<ReturnType<typeof workerOver>>;

describe("the outcome of an attempt", () => {
  let postponed: string[] = [];
  beforeEach(() => {
    postponed = [];
  });
  const postpone = async (all: readonly Postponement[]) => void postponed.push(...all.map(({ id }) => id));

  test.each([
    ["while its queues are reconsidered", Queues.prototype, "reconsider", "a probed endpoint could not be read for"],
    ["in its circuits", Circuits.prototype, "observe", "the circuits of an attempt could not be changed"],
  ] as const)("records a probe's acceptance if there is an error of ours %s", async (_, part, method, trouble) => {
    const recorded: string[] = [];
    const { time, pending, worker, begun, circuits, troubles, faults, answer } = await workerOver({
      record: async ({ id, next: { kind } }) => {
        recorded.push(`${id} ${kind}`);
        return "applied";
      },
    });
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 0 } }];
    worker.leaseLost();
    worker.tick();
    const row = deliveryOf(partnerId);
    pending.rows = [row];
    await time.pass(2_000);
    expect(begun).toEqual([row]);
    const failing = vi.spyOn(part as Queues, method as "reconsider").mockImplementation(() => {
      throw new Error("a bug");
    });
    onTestFinished(() => failing.mockRestore());
    pending.rows = [];
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(recorded).toEqual([`${row.id} accepted`]);
    expect(troubles).toEqual([trouble]);
    expect(faults).toEqual([]);
    expect(worker.status).toMatchObject({ slots: 0, unrecorded: 0, rows: 0 });
  });

  test.each([
    ["of an earlier ownership", undefined, true],
    ["that could not be stored", async () => Promise.reject(new Error("away")), false],
  ])("%s trips no circuit, also not the fifth failure", async (_, record, losesLease) => {
    const { time, worker, shards, begun, answers } = await workerOver(record && { record }, { slotsMax: 32 });
    for (let times = 0; times < 5; times += 1) worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    if (losesLease) {
      shards.mine = shards.mine.map(({ shard, epoch }) => ({ shard, epoch: epoch + 2 }));
      worker.tick();
      await time.pass(100);
    }
    for (const answer of answers.splice(0)) {
      answer({ attempt: failedAttempt, next });
      await time.pass(10);
    }
    const later = deliveryOf(partnerId);
    worker.offer(later, time.ms);
    await time.pass(10);
    expect(begun).toHaveLength(6);
    expect(begun).toContain(later);
  });

  test("of an earlier ownership that could not be stored opens no circuit again that is closed now", async () => {
    const record = Promise.withResolvers<"applied">();
    const { time, pending, worker, begun, circuits, shards, answer } = await workerOver({
      record: () => record.promise,
    });
    circuits.load = async () => [open];
    worker.leaseLost();
    worker.tick();
    pending.rows = [deliveryOf(partnerId)];
    await time.pass(62_000);
    expect(begun).toEqual(pending.rows);
    pending.rows = [];
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    // Another worker had the shard meanwhile, and stored that the endpoint accepts.
    circuits.load = async () => [];
    worker.leaseLost();
    shards.mine = shards.mine.map(({ shard, epoch }) => ({ shard, epoch: epoch + 2 }));
    worker.tick();
    await time.pass(2_000);
    record.reject(new Error("away"));
    await time.pass(10);
    const later = [deliveryOf(partnerId), deliveryOf(partnerId)];
    for (const one of later) worker.offer(one, time.ms);
    await time.pass(10);
    // An open one would let a probe pass, and nothing beside it.
    expect(begun.slice(1)).toEqual(later);
  });

  test("of a POST that failed gives its partner no further POST in the same second", async () => {
    const { time, worker, begun, answers } = await workerOver({}, { slotsMax: 32, maxPerSecond: 2 });
    await time.pass(2_000);
    for (let times = 0; times < 4; times += 1) worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    expect(begun).toHaveLength(2);
    for (const answer of answers.splice(0)) answer({ attempt: failedAttempt, next });
    await time.pass(10);
    expect(begun).toHaveLength(2);
  });

  test("of a probe that was not sent lets one of another queue of that endpoint probe at once", async () => {
    const { time, pending, worker, begun, circuits, answer } = await workerOver({ postpone });
    circuits.load = async () => [{ ...open, circuit: { ...open.circuit, probeInMs: 0 } }];
    worker.leaseLost();
    worker.tick();
    const callBackUrl = `${url}/other`;
    pending.rows = [deliveryOf(partnerId), deliveryOf(partnerId, { queue: callBackUrl, callBackUrl })];
    await time.pass(2_000);
    expect(begun).toHaveLength(1);
    pending.rows = pending.rows.filter((row) => row !== begun[0]);
    answer({ postponeMs: 60_000 });
    await time.pass(10);
    expect(begun.slice(1)).toEqual(pending.rows);
    expect(postponed).toEqual([begun[0]?.id]);
  });

  test("counts an outcome as recorded once, whatever fails afterwards", async () => {
    const { time, worker, troubles, answer } = await workerOver();
    const failing = vi.spyOn(Queues.prototype, "ended").mockImplementation(() => {
      throw new Error("a bug");
    });
    onTestFinished(() => failing.mockRestore());
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(troubles).toEqual(["a notification could not be handled; it is tried again in 30 s"]);
    expect(worker.status).toMatchObject({ slots: 0, unrecorded: 0 });
  });

  test("aborts what is on the wire when the time of a stop is over, then releases its shards, and reads nothing more", async () => {
    const recorded: string[] = [];
    const record = async ({ id }: { readonly id: string }) => {
      recorded.push(id);
      return "applied" as const;
    };
    const { time, pending, worker, begun, shards, aborts, answer } = await workerOver({
      record,
      postpone,
      heads: async () => [],
    });
    pending.rows = Array.from({ length: 40 }, () => deliveryOf(partnerId));
    worker.wake({ partnerId, queue: "" });
    await time.pass(10);
    expect(begun).toHaveLength(2);
    const stopped = worker.stop(1_000);
    await time.pass(900);
    // The others are given up at once: their partners do not wait for a receiver that hangs.
    expect([shards.mine.map(({ shard }) => shard), aborts]).toEqual([[shardOf(partnerId)], []]);
    await time.pass(200);
    expect(await stopped).toBe(2);
    expect([shards.mine.length, aborts]).toEqual([0, [1]]);
    const before = pending.reads.length;
    worker.wake({ partnerId, queue: "" });
    answer({ attempt: failedAttempt, next });
    await time.pass(1_000);
    worker.tick();
    await time.pass(1_000);
    expect(pending.reads.length).toBe(before);
    expect(pending.reads[0]?.rowsMax).toBe(8);
    expect([recorded, postponed, shards.mine, time.waiting]).toEqual([[], [], [], 0]);
  });

  test("begins no attempt while four outcomes for each slot are not recorded", async () => {
    const recording = Promise.withResolvers<"applied">();
    const { time, worker, begun, answers } = await workerOver({ record: () => recording.promise }, { slotsMax: 2 });
    for (let offered = 0; offered < 12; offered += 1) worker.offer(deliveryOf(newId<"partner">()), time.ms);
    for (let rounds = 0; rounds < 12; rounds += 1) {
      await time.pass(10);
      for (const answer of answers.splice(0)) answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    }
    expect([begun.length, worker.status.unrecorded]).toEqual([8, 8]);
    recording.resolve("applied");
    await time.pass(10);
    expect(begun).toHaveLength(10);
  });

  test("waits at a stop until every outcome is recorded, and keeps each shard until those of its own are", async () => {
    const recording = Promise.withResolvers<"applied">();
    const ids = ["01", "02"].map((shard) => `${partnerId.slice(0, -2)}${shard}` as PartnerId);
    const [first, second] = ids.map((id) => deliveryOf(id)) as [Delivery, Delivery];
    const bothShards = ids.map(shardOf);
    const { time, worker, begun, shards, answers } = await workerOver({
      record: async ({ id }) => (id === first.id ? recording.promise : "applied"),
      postpone,
    });
    for (const one of [first, second]) worker.offer(one, time.ms);
    await time.pass(10);
    answers[0]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(worker.status).toMatchObject({ slots: 1, unrecorded: 1 });
    const stopped = worker.stop(60_000);
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(2_000);
    const owned = () => shards.mine.map(({ shard }) => shard);
    expect(owned()).toEqual(bothShards);
    answers[1]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(50_000);
    expect(begun).toEqual([first, second]);
    expect(owned()).toEqual([shardOf(first.partnerId)]);
    recording.resolve("applied");
    await time.pass(1_000);
    expect(await stopped).toBe(0);
    expect(shards.mine).toEqual([]);
    expect(postponed).toEqual([]);
  });

  const twice = [deliveryOf(partnerId), deliveryOf(partnerId, { command: "VOID" })] as const;
  const retried = { attempt: failedAttempt, next } as const;
  const away = () => new Promise<never>(() => undefined);

  test.each([
    ["was sent", 1, {}, (made: Made) => made.answer(retried)],
    ["was postponed", 2, {}, (made: Made) => made.answer({ postponeMs: 60_000 })],
    ["could not be handled", 2, { transactionId: "broken" as TransactionId }, () => undefined],
    ["is for an endpoint that accepts nothing", 2, { callBackUrl: "https://tripped.example/ipn" }, () => undefined],
  ])("uses a token of its partner's rate, and no slot any more, if it %s", async (_, most, more, end) => {
    const queue = originCircuit("https://tripped.example");
    const made = await workerOver({ record: away, postpone: away }, { slotsMax: 4, maxPerSecond: 1 });
    made.circuits.load = async () => [{ ...open, queue }];
    made.worker.leaseLost();
    await made.time.pass(10_000);
    made.worker.offer({ ...twice[0], ...more }, made.time.ms);
    made.worker.offer(twice[1], made.time.ms);
    await made.time.pass(10);
    end(made);
    await made.time.pass(10);
    expect(made.begun.length + (most === 2 && made.begun[0] === twice[1] ? 1 : 0)).toBe(most);
    await made.time.pass(1_000);
    expect(made.begun).toContain(twice[1]);
  });

  test.each<[string, Parameters<Made["answer"]>[0], number[]]>([
    ["is accepted", { attempt: acceptedAttempt, next: { kind: "accepted" } }, []],
    ["is parked", { attempt: failedAttempt, next: { kind: "parked" } }, []],
    ["failed", retried, [5_000]],
    ["was postponed", { postponeMs: 7_000 }, [7_000]],
  ])("is read again when it is due, without a sweep: it %s", async (_, attempted, expected) => {
    const { time, pending, worker, answer } = await workerOver({ heads: async () => [] });
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    const startMs = time.ms;
    const readAtMs: number[] = [];
    pending.whileReading = async () => void readAtMs.push(time.ms - startMs);
    answer(attempted);
    await time.pass(20_000);
    expect(readAtMs).toEqual(expected);
    void worker.stop(60_000);
    await time.pass(10);
    expect(worker.status.shards).toBe(0);
  });

  test.each<[string, (made: Made) => unknown]>([
    ["its partner is paused", ({ others }) => others.set(partnerId, "paused")],
    ["its partner is not known any more", ({ others }) => others.set(partnerId, "unknown")],
    ["the lease has ended", ({ lease }) => Object.assign(lease, { id: undefined })],
    ["its shard is lost", ({ worker }) => worker.leaseLost()],
    ["the egress proxy fails", ({ egress }) => Object.assign(egress, { waitMs: 4_000.5 })],
  ])("begins nothing that waits for a slot when %s", async (_, change) => {
    const made = await workerOver({ heads: async () => [] });
    made.worker.offer(twice[0], made.time.ms);
    change(made);
    await made.time.pass(3_000);
    expect(made.begun).toEqual([]);
    if (made.egress.waitMs === 0) return expect(made.worker.status.rows).toBe(0);
    made.egress.waitMs = 0;
    await made.time.pass(1_100);
    expect(made.begun).toEqual([twice[0]]);
  });

  test.each([true, false])("leaves no timer behind at a stop, in the middle of a tick: %s", async (isTicking) => {
    const { time, worker, begun, answer } = await workerOver({}, { slotsMax: 32, maxPerSecond: 1 });
    await time.pass(5_000);
    for (let nth = 0; nth < 8; nth += 1) {
      worker.offer(deliveryOf(partnerId), time.ms);
      await time.pass(1);
    }
    expect(begun).toHaveLength(1);
    // The next tick, and the next token.
    expect(time.waiting).toBe(2);
    answer(retried);
    await time.pass(10);
    if (isTicking) worker.tick();
    expect(await worker.stop(60_000)).toBe(0);
    await time.pass(10);
    expect(time.waiting).toBe(0);
  });

  test("of an earlier ownership sends nothing more, is not repeated from memory, and ends no later attempt", async () => {
    const { time, worker, begun, shards, lease, pending, mayWrite, answers } = await workerOver();
    const rows = Array.from({ length: 4 }, () => deliveryOf(partnerId));
    for (const row of rows) worker.offer(row, time.ms);
    await time.pass(10);
    const [first, other] = rows;
    // Another worker had the shard meanwhile, and sent all but the first one.
    lease.id = newId<"lease">() as LeaseId;
    worker.leaseLost();
    shards.mine = shards.mine.map(({ shard, epoch }) => ({ shard, epoch: epoch + 2 }));
    worker.tick();
    pending.rows = first === undefined ? [] : [{ ...first }];
    await time.pass(3_000);
    answers[1]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(begun).toEqual([first, other, first]);
    expect(mayWrite.map((may) => may())).toEqual([false, false, true]);
    answers[0]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(3_000);
    expect(begun).toHaveLength(3);
    void worker.stop(60_000);
    await time.pass(10_000);
    expect(shards.mine.map(({ shard }) => shard)).toEqual([shardOf(partnerId)]);
    answers[2]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(shards.mine).toEqual([]);
  });

  test("releases its shards with outcomes unrecorded when the time of a stop is over", async () => {
    const { time, worker, shards, answer } = await workerOver({ record: () => new Promise(() => {}), postpone });
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    const stopped = worker.stop(1_000);
    await time.pass(2_000);
    await stopped;
    expect(shards.mine).toEqual([]);
  });

  test("starts nothing for a shard that drains, and keeps it until its POST is answered and recorded", async () => {
    const recording = Promise.withResolvers<"applied">();
    const { time, worker, begun, shards, answers } = await workerOver(
      { record: () => recording.promise },
      { slotsMax: 4 * shardCount },
    );
    const everyShard = Array.from({ length: shardCount }, (_, shard) => shard);
    const offerToEach = () => {
      for (const shard of everyShard) {
        const to = `${partnerId.slice(0, -2)}${shard.toString(16).padStart(2, "0")}` as PartnerId;
        worker.offer(deliveryOf(to), time.ms);
      }
    };
    offerToEach();
    await time.pass(10);
    expect(begun).toHaveLength(shardCount);
    shards.others = [{ leaseId: newId<"lease">() as LeaseId, beats: 10, owned: 0 }];
    await time.pass(30_000);
    expect([shards.mine.length, worker.ownership.ready.length]).toEqual([shardCount, shardCount / 2]);
    const draining = shardOf(begun[0]?.partnerId ?? partnerId);
    expect(worker.ownership.ready).not.toContain(draining);
    offerToEach();
    await time.pass(10);
    expect(begun).toHaveLength(shardCount + shardCount / 2);
    const owned = () => shards.mine.map(({ shard }) => shard);
    answers[0]?.({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(2_000);
    expect(owned()).toContain(draining);
    recording.resolve("applied");
    await time.pass(2_000);
    expect(owned()).toEqual(everyShard.filter((shard) => shard !== draining));
  });

  test("hands over the shard of a POST in flight only after that has ended, while its statements fail", async () => {
    // Its outcome is not recorded, either: that keeps no shard.
    const { time, worker, begun, mayWrite, fitness, shards, answer } = await workerOver({
      record: () => new Promise(() => {}),
    });
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    expect(mayWrite[0]?.()).toBe(true);
    shards.isFailing = true;
    await time.pass(12_000);
    expect([worker.isFit, fitness]).toEqual([false, [false]]);
    expect(begun).toHaveLength(1);
    expect(shards.mine.map(({ shard }) => shard)).toEqual([shardOf(partnerId)]);
    expect(worker.owns(partnerId)).toBe(false);
    // Its lease stands.
    expect(mayWrite[0]?.()).toBe(false);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(2_000);
    expect(shards.mine).toEqual([]);
    expect(shards.releasedOverLease.toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: shardCount }, (_, at) => at),
    );
    shards.isFailing = false;
    await time.pass(3_000);
    expect([worker.isFit, fitness]).toEqual([true, [false, true]]);
    expect(worker.owns(partnerId)).toBe(true);
  });
});
