import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { newId, type PartnerId } from "../../ids.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import type { Delivery, Hint } from "../store.ts";
import { Hints } from "./hints.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A process of two workers, each of which owns the named partners. */
function processOf(...owned: readonly (readonly PartnerId[])[]) {
  const announced: string[] = [];
  const troubles: unknown[] = [];
  const workers = owned.map((partners) => {
    const got = { offered: [] as Delivery[], hinted: [] as Hint[], told: [] as string[] };
    return {
      got,
      owns: (id: PartnerId) => partners.includes(id),
      offer: (delivery: Delivery) => void got.offered.push(delivery),
      hint: (hint: Hint) => void got.hinted.push(hint),
      notify: (news: string) => void got.told.push(news),
    };
  });
  const state = { announce: (payload: string) => Promise.resolve(void announced.push(payload)) };
  const hints = new Hints({
    workers,
    announce: (payload) => state.announce(payload),
    onTrouble: (error) => troubles.push(error),
  });
  return { hints, announced, troubles, state, got: workers.map((worker) => worker.got) };
}

const partner = () => newId<"partner">();
const nothing = { offered: [], hinted: [], told: [] };

test("a delivery goes with its content to the worker that owns its partner, and to no other", () => {
  const [here, there] = [partner(), partner()];
  const { hints, got, announced } = processOf([here], [there]);
  const delivery = deliveryOf(there);
  hints.offer(delivery, 0);
  hints.due({ partnerId: here, queue: "https://a.example" });
  expect(got).toEqual([
    { ...nothing, hinted: [{ partnerId: here, queue: "https://a.example" }] },
    { ...nothing, offered: [delivery] },
  ]);
  vi.runOnlyPendingTimers();
  expect(announced).toEqual([]);
});

test("partners of another process are announced by name only: at once, then batched for 5 ms", () => {
  const { hints, announced } = processOf([]);
  const [first, second] = [partner(), partner()];
  hints.offer(deliveryOf(first, { content: "a secret", queue: "https://a.example", scheduleStartMs: 1_000 }), 0);
  expect(announced).toEqual([JSON.stringify([[first, "https://a.example", 1_000]])]);
  for (const scheduleStartMs of [3_000, 2_000, 4_000]) hints.offer(deliveryOf(first, { scheduleStartMs }), 0);
  hints.due({ partnerId: second });
  vi.advanceTimersByTime(4);
  expect(announced).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(announced.slice(1)).toEqual([JSON.stringify([[first, "", 2_000], [second]])]);
  vi.advanceTimersByTime(5);
  hints.due({ partnerId: second });
  expect(announced).toHaveLength(3);
});

test("if one hint to a queue does not know since when, the announcement does not either", () => {
  const partnerId = partner();
  const { hints, announced } = processOf([]);
  hints.due({ partnerId: partner() });
  hints.offer(deliveryOf(partnerId), 0);
  hints.due({ partnerId, queue: "" });
  hints.offer(deliveryOf(partnerId), 0);
  vi.runOnlyPendingTimers();
  expect(announced[1]).toBe(JSON.stringify([[partnerId, ""]]));
});

test("an announcement is understood by another process, and reaches only the owner", () => {
  const [here, elsewhere] = [partner(), partner()];
  const { hints, announced } = processOf([]);
  hints.due({ partnerId: here, queue: 'https://a.example/"ü' });
  hints.due({ partnerId: here });
  hints.offer(deliveryOf(here, { scheduleStartMs: 5_000 }), 0);
  hints.due({ partnerId: elsewhere, queue: "" });
  vi.runOnlyPendingTimers();
  const other = processOf([], [here]);
  for (const payload of announced) other.hints.received(payload);
  expect(other.got).toEqual([
    nothing,
    {
      ...nothing,
      hinted: [
        { partnerId: here, queue: 'https://a.example/"ü' },
        { partnerId: here },
        { partnerId: here, queue: "", sinceMs: 5_000 },
      ],
    },
  ]);
  vi.runOnlyPendingTimers();
  // If it were passed on, it would circulate forever.
  expect(other.announced).toEqual([]);
});

test("more than one NOTIFY may contain is announced in several", () => {
  const { hints, announced } = processOf([]);
  const partners = Array.from({ length: 500 }, partner);
  for (const partnerId of partners) hints.due({ partnerId, queue: "" });
  vi.runOnlyPendingTimers();
  expect(announced.every((payload) => Buffer.byteLength(payload) < 8_000)).toBe(true);
  const named = announced.flatMap((payload) => JSON.parse(payload) as [PartnerId, string][]);
  expect(named).toEqual(partners.map((partnerId) => [partnerId, ""]));
});

test("an announcement that cannot be parsed makes every worker look at all of its queues", () => {
  const other = processOf([], []);
  other.hints.received("");
  other.hints.received("not JSON");
  expect(other.got).toEqual([
    { ...nothing, told: ["due", "due"] },
    { ...nothing, told: ["due", "due"] },
  ]);
});

test("a failed announcement is reported, and the next one is made", async () => {
  const { hints, announced, troubles, state } = processOf([]);
  const { announce } = state;
  state.announce = () => Promise.reject(new Error("away"));
  hints.due({ partnerId: partner() });
  await vi.advanceTimersByTimeAsync(5);
  expect(troubles).toEqual([new Error("away")]);
  state.announce = announce;
  hints.due({ partnerId: partner() });
  expect(announced).toHaveLength(1);
});

test("with a slow database a few announcements are in flight, and the next has everything since", async () => {
  const { hints, announced, state } = processOf([]);
  const { announce } = state;
  const answer = Promise.withResolvers<void>();
  state.announce = async (payload) => {
    await announce(payload);
    await answer.promise;
  };
  const named = () => announced.flatMap((payload) => JSON.parse(payload) as [PartnerId, string][]).map(([id]) => id);
  const partners = Array.from({ length: 12_000 }, partner);
  for (const [nth, partnerId] of partners.entries()) {
    hints.due({ partnerId, queue: "" });
    if (nth % 1_000 === 0) await vi.advanceTimersByTimeAsync(10);
  }
  const before = named().length;
  expect(named()).toEqual(partners.slice(0, before));
  expect(before).toBeLessThan(2_000);
  answer.resolve();
  await vi.advanceTimersByTimeAsync(10);
  expect(named()).toEqual(partners.slice(0, before + 10_000));
});
