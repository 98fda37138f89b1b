import { describe, expect, test } from "vitest";
import type { NotificationId } from "../../ids.ts";
import type { Delivery } from "../delivery.ts";
import { leftMs, type Precedence } from "../store.ts";
import { DeliveryOrder, judgeOrder, orderWaitMaxMs } from "./order.ts";

const id = (text: string) => text as NotificationId;

test("the rest of a delay counts from when its statement was sent", () => {
  const at = (ms: number) => ({ monotonicMs: () => ms });
  expect(leftMs(500, 1_000, at(1_020))).toBe(480);
  expect(leftMs(500, 1_000, at(9_000))).toBe(0);
});

describe("a delivery that follows others", () => {
  test.each<[string, Precedence, boolean, object]>([
    ["leaves when nothing precedes it", { after: undefined, ageMs: 5 }, false, { kind: "leaves", outOfOrder: false }],
    ["waits for one in hand", { after: id("a"), ageMs: 5 }, true, { kind: "waits", after: "a" }],
    ["is postponed by half a second at least", { after: id("a"), ageMs: 5 }, false, { kind: "postpone", delayMs: 500 }],
    [
      "is postponed by a tenth of its age",
      { after: id("a"), ageMs: 90_000 },
      false,
      { kind: "postpone", delayMs: 9_000 },
    ],
    ["is postponed by 30 s at most", { after: id("a"), ageMs: 400_000 }, false, { kind: "postpone", delayMs: 30_000 }],
    [
      "leaves out of order after ten minutes",
      { after: id("a"), ageMs: orderWaitMaxMs },
      false,
      { kind: "leaves", outOfOrder: true },
    ],
    [
      "waits for one in hand after ten minutes, too",
      { after: id("a"), ageMs: orderWaitMaxMs },
      true,
      { kind: "waits", after: "a" },
    ],
  ])("%s", (_, precedence, isInHand, verdict) => {
    expect(judgeOrder(precedence, () => isInHand)).toEqual(verdict);
  });
});

/** An order over deliveries in memory, with timers that run on request. */
function orderOver(inHand: Delivery[], answers: () => readonly Precedence[], postpone: () => Promise<void>, nowMs = 0) {
  const timers: (() => void)[] = [];
  const left: string[] = [];
  const postponed: string[] = [];
  const order = new DeliveryOrder({
    store: { preceding: async () => answers(), postpone },
    clock: { monotonicMs: () => nowMs },
    timers: {
      after: (_, work) => {
        timers.push(work);
        return () => undefined;
      },
    },
    queues: {
      has: (one) => inHand.some((delivery) => delivery.id === one),
      holds: (one) => inHand.includes(one),
      makeReady: (delivery) => void left.push(delivery.id),
      release: (delivery) => void postponed.push(delivery.id),
    },
    onTrouble: () => undefined,
  });
  const runTimers = async () => {
    for (const work of timers.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { order, left, postponed, runTimers };
}

describe("the order of deliveries", () => {
  const follower = { id: id("b") } as Delivery;

  test("checks again when the delivery it waited for has ended", async () => {
    const first = { id: id("a") } as Delivery;
    let after: NotificationId | undefined = first.id;
    const { order, left, runTimers } = orderOver(
      [first, follower],
      () => [{ after, ageMs: 0 }],
      async () => undefined,
    );
    order.check([follower]);
    await runTimers();
    expect(left).toEqual([]);
    after = undefined;
    order.ended(first.id);
    await runTimers();
    expect(left).toEqual(["b"]);
  });

  test("sends nothing twice because another could not be postponed", async () => {
    const blocked = { id: id("c") } as Delivery;
    let failures = 1;
    const answers: Precedence[][] = [
      [
        { after: undefined, ageMs: 0 },
        { after: id("elsewhere"), ageMs: 0 },
      ],
      [{ after: id("elsewhere"), ageMs: 0 }],
    ];
    const { order, left, postponed, runTimers } = orderOver(
      [follower, blocked],
      () => answers.shift() ?? [],
      async () => {
        failures -= 1;
        if (failures >= 0) throw new Error("the database is away");
      },
    );
    order.check([follower, blocked]);
    await runTimers();
    expect(postponed).toEqual([]);
    await runTimers();
    expect(left).toEqual(["b"]);
    expect(postponed).toEqual(["c"]);
  });
});
