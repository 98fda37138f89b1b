import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemTimers } from "../../clock.ts";
import { newId, type PartnerId } from "../../ids.ts";
import { deliveryOf } from "../delivery.fixture.ts";
import type { Delivery } from "../delivery.ts";
import type { Hint } from "../store.ts";
import { Hints } from "./hints.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A process whose worker owns the named partners, or one that does not send. */
function processOf(owned: readonly PartnerId[] | "does not send") {
  const announced: string[] = [];
  const troubles: unknown[] = [];
  const got = { offered: [] as (readonly [Delivery, number])[], woken: [] as Hint[], handedOver: 0, ticks: 0 };
  const state = {
    announce: (payload: string) => Promise.resolve(void announced.push(payload)),
    /** Called by the worker before it does anything. */
    inWorker: (): void => undefined,
  };
  const worker = {
    owns: (id: PartnerId) => owned.includes(id),
    offer: (delivery: Delivery, begunMs: number) => {
      state.inWorker();
      got.offered.push([delivery, begunMs]);
    },
    wake: (hint: Hint) => {
      state.inWorker();
      got.woken.push(hint);
    },
    tick: () => {
      got.ticks += 1;
    },
  };
  const hints = new Hints({
    worker: owned === "does not send" ? undefined : worker,
    announce: (payload) => state.announce(payload),
    timers: systemTimers,
    onOffered: () => {
      got.handedOver += 1;
    },
    onTrouble: (error) => troubles.push(error),
  });
  return { hints, announced, troubles, state, got };
}

const partner = () => newId<"partner">();
const nothing = { offered: [], woken: [], handedOver: 0, ticks: 0 };

test("a delivery goes with its content to the worker if that owns its partner, and nothing is announced", () => {
  const here = partner();
  const { hints, got, announced } = processOf([here]);
  const delivery = deliveryOf(here);
  hints.offer(delivery, 7);
  hints.due({ partnerId: here, queue: "https://a.example" });
  const woken = [{ partnerId: here, queue: "https://a.example" }];
  expect(got).toEqual({ ...nothing, offered: [[delivery, 7]], handedOver: 1, woken });
  vi.runOnlyPendingTimers();
  expect(announced).toEqual([]);
});

test("deliveries of partners that the worker does not own are announced, and not counted as handed over", () => {
  const { hints, got, announced } = processOf([partner()]);
  const there = partner();
  hints.offer(deliveryOf(there, { scheduleStartMs: 1_000 }), 0);
  hints.due({ partnerId: there, queue: "https://a.example" });
  vi.runOnlyPendingTimers();
  expect(got).toEqual(nothing);
  expect(announced).toEqual([JSON.stringify([[there, "", 1_000]]), JSON.stringify([[there, "https://a.example"]])]);
});

test("an error of the worker is reported, and not thrown to the caller, whose result is committed", () => {
  const here = partner();
  const { hints, got, announced, troubles, state } = processOf([here]);
  const broken = new Error("delivery is broken");
  state.inWorker = () => {
    throw broken;
  };
  hints.offer(deliveryOf(here), 0);
  hints.due({ partnerId: here });
  expect(troubles).toEqual([broken, broken]);
  expect([got, announced]).toEqual([nothing, []]);
});

test("partners of another process are announced by name only: at once, then batched for 5 ms", () => {
  const { hints, announced } = processOf("does not send");
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
  const { hints, announced } = processOf("does not send");
  hints.due({ partnerId: partner() });
  hints.offer(deliveryOf(partnerId), 0);
  hints.due({ partnerId, queue: "" });
  hints.offer(deliveryOf(partnerId), 0);
  vi.runOnlyPendingTimers();
  expect(announced[1]).toBe(JSON.stringify([[partnerId, ""]]));
});

test("an announcement is understood by another process, and reaches only the owner", () => {
  const [here, elsewhere] = [partner(), partner()];
  const { hints, announced } = processOf("does not send");
  hints.due({ partnerId: here, queue: 'https://a.example/"ü' });
  hints.due({ partnerId: here });
  hints.offer(deliveryOf(here, { scheduleStartMs: 5_000 }), 0);
  hints.due({ partnerId: elsewhere, queue: "" });
  vi.runOnlyPendingTimers();
  const other = processOf([here]);
  for (const payload of announced) other.hints.received(payload);
  expect(other.got).toEqual({
    ...nothing,
    woken: [
      { partnerId: here, queue: 'https://a.example/"ü' },
      { partnerId: here },
      { partnerId: here, queue: "", sinceMs: 5_000 },
    ],
  });
  vi.runOnlyPendingTimers();
  // If it were passed on, it would circulate forever.
  expect(other.announced).toEqual([]);
});

test("more than one NOTIFY may contain is announced in several", () => {
  const { hints, announced } = processOf("does not send");
  const partners = Array.from({ length: 500 }, partner);
  for (const partnerId of partners) hints.due({ partnerId, queue: "" });
  vi.runOnlyPendingTimers();
  expect(announced.every((payload) => Buffer.byteLength(payload) < 8_000)).toBe(true);
  const named = announced.flatMap((payload) => JSON.parse(payload) as [PartnerId, string][]);
  expect(named).toEqual(partners.map((partnerId) => [partnerId, ""]));
});

test("an announcement that cannot be parsed makes the worker look at all of its queues", () => {
  const other = processOf([]);
  other.hints.received("");
  other.hints.received("not JSON");
  expect(other.got).toEqual({ ...nothing, ticks: 2 });
});

test("a process that does not send ignores announcements", () => {
  const other = processOf("does not send");
  for (const payload of ["not JSON", JSON.stringify([[partner(), ""]])]) other.hints.received(payload);
  expect([other.announced, other.troubles]).toEqual([[], []]);
});

test("failed announcements are reported, and the next one is made", async () => {
  const { hints, announced, troubles, state } = processOf("does not send");
  const { announce } = state;
  state.announce = () => Promise.reject(new Error("away"));
  for (let times = 0; times < 5; times += 1) {
    hints.due({ partnerId: partner() });
    await vi.advanceTimersByTimeAsync(5);
  }
  expect(troubles).toEqual(Array(5).fill(new Error("away")));
  state.announce = announce;
  hints.due({ partnerId: partner() });
  expect(announced).toHaveLength(1);
});

test("with a slow database a few announcements are in flight, and the next has everything since", async () => {
  const { hints, announced, state } = processOf("does not send");
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
