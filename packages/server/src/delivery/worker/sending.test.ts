import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { type LeaseId, newId, type PartnerId, shardCount, shardOf } from "../../ids.ts";
import { acceptedAttempt, deliveryOf, failedAttempt } from "../delivery.fixture.ts";
import { Circuits } from "../limits/circuits.ts";
import { Queues } from "../queues/queues.ts";
import type { Postponement } from "../store.ts";
import { next, open, partnerId, url, workerOver } from "./worker.fixture.ts";

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
    const { time, pending, worker, begun, shards, aborts, answer } = await workerOver({ record, postpone });
    pending.rows = Array.from({ length: 40 }, () => deliveryOf(partnerId));
    worker.wake({ partnerId, queue: "" });
    await time.pass(10);
    expect(begun).toHaveLength(2);
    const stopped = worker.stop(1_000);
    await time.pass(900);
    expect([shards.mine.length, aborts]).toEqual([shardCount, []]);
    await time.pass(200);
    expect(await stopped).toBe(2);
    expect([shards.mine.length, aborts]).toEqual([0, [shardCount]]);
    const before = pending.reads.length;
    worker.wake({ partnerId, queue: "" });
    answer({ attempt: failedAttempt, next });
    await time.pass(1_000);
    expect(pending.reads.length).toBe(before);
    expect([recorded, postponed]).toEqual([[], []]);
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

  test("waits at a stop until every outcome is recorded, and keeps its shards meanwhile", async () => {
    const recording = Promise.withResolvers<"applied">();
    const { time, worker, begun, shards, answer } = await workerOver({ record: () => recording.promise, postpone });
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(10);
    answer({ attempt: acceptedAttempt, next: { kind: "accepted" } });
    await time.pass(10);
    expect(worker.status).toMatchObject({ slots: 0, unrecorded: 1 });
    const stopped = worker.stop(60_000);
    worker.offer(deliveryOf(partnerId), time.ms);
    await time.pass(50_000);
    expect(begun).toHaveLength(1);
    expect(shards.mine).toHaveLength(shardCount);
    recording.resolve("applied");
    await time.pass(1_000);
    expect(await stopped).toBe(0);
    expect(shards.mine).toEqual([]);
    expect(postponed).toEqual([]);
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
