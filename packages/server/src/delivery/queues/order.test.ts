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
      "is postponed to the end of ten minutes at most",
      { after: id("a"), ageMs: orderWaitMaxMs - 9_000 },
      false,
      { kind: "postpone", delayMs: 9_000 },
    ],
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
function orderOver(
  inHand: Delivery[],
  answers: () => readonly (Precedence | undefined)[],
  postpone: () => Promise<void>,
  nowMs = 0,
) {
  const timers: (() => void)[] = [];
  const troubles: unknown[] = [];
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
    onTrouble: (error) => void troubles.push(error),
  });
  const runTimers = async () => {
    for (const work of timers.splice(0)) work();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { order, left, postponed, troubles, runTimers };
}

describe("the order of deliveries", () => {
  const follower = { id: id("b") } as Delivery;

  test("checks each again, once, when the delivery that they waited for has ended", async () => {
    const [first, ...followers] = ["a", "b", "c", "d"].map((name) => ({ id: id(name) }) as Delivery);
    let after = first?.id;
    const { order, left, postponed, runTimers } = orderOver(
      [first as Delivery, ...followers],
      () => followers.map(() => ({ after, ageMs: 0 })),
      async () => undefined,
    );
    order.check(followers);
    await runTimers();
    expect(left).toEqual([]);
    after = undefined;
    order.ended(id("a"));
    order.ended(id("a"));
    await runTimers();
    expect([left, postponed]).toEqual([["b", "c", "d"], []]);
  });

  test("says that one leaves out of order until it has left memory", async () => {
    const inHand = [follower, { id: id("c") } as Delivery];
    const { order, left, runTimers } = orderOver(
      inHand,
      () => inHand.map(({ id: own }) => ({ after: own === "b" ? id("elsewhere") : undefined, ageMs: orderWaitMaxMs })),
      async () => undefined,
    );
    order.check(inHand);
    await runTimers();
    const outOfOrder = () => left.filter((one) => order.isOutOfOrder(id(one)));
    // The first one is added last: each is put before those that wait.
    expect([left, outOfOrder()]).toEqual([["c", "b"], ["b"]]);
    order.ended(follower.id);
    expect(outOfOrder()).toEqual([]);
  });

  test("releases what is no longer pending, and leaves alone what was released meanwhile", async () => {
    const inHand = ["b", "c", "d", "e"].map((name) => ({ id: id(name) }) as Delivery);
    const { order, left, postponed, runTimers } = orderOver(
      inHand,
      () => {
        // Its shard was released while the statement ran.
        inHand.splice(2, 1);
        return [undefined, { after: undefined, ageMs: 0 }, { after: undefined, ageMs: 0 }];
      },
      async () => undefined,
    );
    order.check(inHand.slice());
    inHand.splice(0, 1);
    await runTimers();
    expect([left, postponed]).toEqual([["d"], ["c"]]);
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
    const { order, left, postponed, troubles, runTimers } = orderOver(
      [follower, blocked],
      () => answers.shift() ?? [],
      async () => {
        failures -= 1;
        if (failures >= 0) throw new Error("the database is away");
      },
    );
    order.check([follower, blocked]);
    await runTimers();
    expect([postponed, troubles]).toEqual([[], [new Error("the database is away")]]);
    await runTimers();
    expect(left).toEqual(["b"]);
    expect(postponed).toEqual(["c"]);
  });
});
