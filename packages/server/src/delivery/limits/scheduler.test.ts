import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { PartnerId } from "../../ids.ts";
import { type PartnerLimits, type Picked, Scheduler, type Slot } from "./scheduler.ts";

const quantumBytes = 16 * 1_024;
const unlimited: PartnerLimits = { maxInFlight: 1_000, maxPerSecond: null, ownedSinceMs: -60_000 };

/** Bodies to send, by size. */
class Bodies {
  readonly partnerId: PartnerId;
  readonly waiting: number[];

  constructor(partner: string, waiting: readonly number[]) {
    this.partnerId = partner as PartnerId;
    this.waiting = [...waiting];
  }

  get head(): { readonly bytes: number } | undefined {
    const [bytes] = this.waiting;
    return bytes === undefined ? undefined : { bytes };
  }
}

function times(count: number, bytes = 100): readonly number[] {
  return Array.from({ length: count }, () => bytes);
}

function schedulerOf(slotsMax = 1_000, bytesMax = 1e9) {
  const clock = { ms: 0 };
  const scheduler = new Scheduler<Bodies>({ slotsMax, bytesMax, nowMs: () => clock.ms });
  /** Starts the next one, as the worker does. */
  const start = (): Picked<Bodies> | undefined => {
    const picked = scheduler.next();
    picked?.queue.waiting.shift();
    if (picked !== undefined && picked.queue.head === undefined) scheduler.remove(picked.queue);
    return picked;
  };
  const startAll = (): readonly Picked<Bodies>[] => {
    const started: Picked<Bodies>[] = [];
    for (let picked = start(); picked !== undefined; picked = start()) started.push(picked);
    return started;
  };
  return { clock, scheduler, start, startAll };
}

describe("partners share by bytes", () => {
  const sizes = fc.array(fc.integer({ min: 1, max: 100_000 }), { minLength: 1, maxLength: 4 });

  test("lets no partner get ahead by more than two turns and a body, whatever the sizes of bodies", () => {
    fc.assert(
      fc.property(fc.array(sizes, { minLength: 2, maxLength: 5 }), (partners) => {
        const { scheduler } = schedulerOf();
        const queues = partners.map((bodies, at) => new Bodies(`partner ${at}`, bodies));
        const sent = new Map<Bodies, number>(queues.map((queue) => [queue, 0]));
        for (const queue of queues) scheduler.add(queue, unlimited);
        for (let picks = 0; picks < 300; picks += 1) {
          const picked = scheduler.next();
          if (picked === undefined) throw new Error("nothing starts although everything is free");
          const { queue, slot } = picked;
          sent.set(queue, (sent.get(queue) ?? 0) + slot.bytes);
          // There is always another one.
          queue.waiting.push(queue.waiting.shift() ?? 0);
          scheduler.end(slot, true);
          const ahead = Math.max(...sent.values()) - Math.min(...sent.values());
          expect(ahead).toBeLessThanOrEqual(2 * quantumBytes + 100_000);
        }
      }),
    );
  });

  test("and a partner that was alone owes nothing to a newcomer", () => {
    const { scheduler, start } = schedulerOf();
    scheduler.add(new Bodies("alone", times(20, 50_000)), unlimited);
    for (let sent = 0; sent < 10; sent += 1) expect(start()?.queue.partnerId).toBe("alone");
    scheduler.add(new Bodies("newcomer", times(40, 50_000)), unlimited);
    const next = Array.from({ length: 10 }, () => start()?.queue.partnerId);
    expect(next.filter((partnerId) => partnerId === "alone").length).toBeGreaterThanOrEqual(4);
  });

  test("and a partner's queues take turns", () => {
    const { scheduler, startAll } = schedulerOf();
    const queues = [1, 2, 3].map(() => new Bodies("one", times(3)));
    for (const queue of queues) scheduler.add(queue, unlimited);
    const order = startAll().map(({ queue }) => queues.indexOf(queue));
    expect(order).toEqual([0, 1, 2, 0, 1, 2, 0, 1, 2]);
  });

  test("and an empty queue does not delay its partner's others", () => {
    const { scheduler, start } = schedulerOf();
    const [emptied, other] = [new Bodies("one", times(1)), new Bodies("one", times(1))];
    scheduler.add(emptied, unlimited);
    scheduler.add(other, unlimited);
    emptied.waiting.pop();
    expect(start()?.queue).toBe(other);
  });
});

describe("a partner gets a slot", () => {
  test("while it holds fewer than its maxInFlight, and again with each that ends", () => {
    const { scheduler, start, startAll } = schedulerOf();
    scheduler.add(new Bodies("one", times(10)), { ...unlimited, maxInFlight: 3 });
    const started = startAll();
    expect(started).toHaveLength(3);
    scheduler.end(started[0]?.slot as Slot, true);
    expect(start()).toBeDefined();
    expect(start()).toBeUndefined();
  });

  test("beside those that it took before its queue was empty", () => {
    const { scheduler, start, startAll } = schedulerOf();
    const [queue, limits] = [new Bodies("one", times(2)), { ...unlimited, maxInFlight: 2 }];
    scheduler.add(queue, limits);
    expect(startAll()).toHaveLength(2);
    queue.waiting.push(100);
    scheduler.add(queue, limits);
    expect(start()).toBeUndefined();
  });

  test("by its current maxInFlight, if that was lowered", () => {
    const { scheduler, start } = schedulerOf();
    const queue = new Bodies("one", times(10));
    scheduler.add(queue, { ...unlimited, maxInFlight: 4 });
    const [first] = [start(), start(), start()];
    scheduler.add(queue, { ...unlimited, maxInFlight: 2 });
    expect(start()).toBeUndefined();
    scheduler.end(first?.slot as Slot, true);
    expect(start()).toBeUndefined();
    scheduler.add(queue, { ...unlimited, maxInFlight: 4 });
    expect(start()).toBeDefined();
  });

  test.each([1, 2, 3, 7])(
    "while it holds fewer than are free: %i that hang leave one share of the slots",
    (hanging) => {
      const { scheduler, startAll } = schedulerOf(64);
      for (let at = 0; at < hanging; at += 1) scheduler.add(new Bodies(`hangs ${at}`, times(2_000)), unlimited);
      const inFlight = [...startAll()];
      // They time out in the order in which they were sent.
      for (let ended = 0; ended < 500; ended += 1) {
        scheduler.end(inFlight.shift()?.slot as Slot, true);
        inFlight.push(...startAll());
      }
      const free = 64 - scheduler.slotsInUse;
      expect(Math.abs(free - 64 / (hanging + 1))).toBeLessThanOrEqual(1);
      scheduler.add(new Bodies("answers", times(64)), unlimited);
      expect(startAll().filter(({ queue }) => queue.partnerId === "answers").length).toBe(Math.ceil(free / 2));
    },
  );

  test("while its bytes are fewer than are free: one partner alone gets half of them", () => {
    const { scheduler, startAll } = schedulerOf(1_000, 10_000);
    scheduler.add(new Bodies("one", times(50, 1_000)), unlimited);
    for (const { slot } of startAll()) scheduler.end(slot, true);
    expect(startAll()).toHaveLength(5);
    scheduler.add(new Bodies("other", times(50, 1_000)), unlimited);
    expect(startAll().map(({ queue }) => queue.partnerId)).toEqual(["other", "other", "other"]);
    expect(scheduler.bytes).toBe(8_000);
  });

  test("for a body larger than the limit: it counts as half of it, and is sent", () => {
    const { scheduler, start } = schedulerOf(10, 10_000);
    scheduler.add(new Bodies("large", [1_000_000, 1_000_000]), unlimited);
    const picked = start();
    expect(picked?.slot.bytes).toBe(5_000);
    expect(start()).toBeUndefined();
    scheduler.end(picked?.slot as Slot, true);
    expect(scheduler.bytes).toBe(0);
    expect(start()).toBeDefined();
  });
});

describe("a partner's tokens", () => {
  const onePerSecond: PartnerLimits = { ...unlimited, maxPerSecond: 1 };

  test("bound what is sent, and tell when the next one may be", () => {
    const { scheduler, clock, start } = schedulerOf();
    scheduler.add(new Bodies("one", times(3)), onePerSecond);
    const first = start();
    scheduler.end(first?.slot as Slot, true);
    expect(start()).toBeUndefined();
    expect(scheduler.tokenInMs()).toBe(1_000);
    clock.ms += 1_000;
    expect(start()).toBeDefined();
  });

  test.each([
    [1, 4, 2],
    [4, 2, 1],
  ])("are awaited by the partner that gets one first: %i, %i, %i a second", (...perSecond) => {
    const { scheduler, start } = schedulerOf();
    for (const maxPerSecond of perSecond)
      scheduler.add(new Bodies(`${maxPerSecond}`, times(3)), { ...unlimited, maxPerSecond, ownedSinceMs: 0 });
    expect(start()).toBeUndefined();
    expect(scheduler.tokenInMs()).toBe(250);
  });

  test("are not missed if the next one arrived just after it was looked for", () => {
    const { scheduler, clock, start } = schedulerOf();
    scheduler.add(new Bodies("one", times(3)), onePerSecond);
    scheduler.end(start()?.slot as Slot, true);
    clock.ms = 999.9;
    expect(start()).toBeUndefined();
    clock.ms = 1_000;
    expect(scheduler.tokenInMs()).toBe(0);
  });

  test("are not awaited by a partner that has no slot either", () => {
    const { scheduler, start } = schedulerOf(1);
    scheduler.add(new Bodies("one", times(3)), onePerSecond);
    expect(start()).toBeDefined();
    expect(start()).toBeUndefined();
    expect(scheduler.tokenInMs()).toBeUndefined();
  });

  test("are returned if nothing was sent", () => {
    const { scheduler, start } = schedulerOf();
    scheduler.add(new Bodies("one", times(3)), onePerSecond);
    scheduler.end(start()?.slot as Slot, false);
    expect(start()).toBeDefined();
  });

  test("are none at first for a shard that was just claimed", () => {
    const { scheduler, start } = schedulerOf();
    scheduler.add(new Bodies("one", times(3)), { ...onePerSecond, ownedSinceMs: 0 });
    expect(start()).toBeUndefined();
    expect(scheduler.tokenInMs()).toBe(1_000);
  });

  test("are not awaited by a partner with nothing to send", () => {
    const { scheduler, start } = schedulerOf();
    const queue = new Bodies("one", times(1));
    scheduler.add(queue, { ...onePerSecond, ownedSinceMs: 0 });
    queue.waiting.pop();
    expect(start()).toBeUndefined();
    expect(scheduler.tokenInMs()).toBeUndefined();
  });

  test("delay nobody else, although both have sent more than their turn", () => {
    const { scheduler, start } = schedulerOf();
    scheduler.add(new Bodies("limited", times(3, 100_000)), onePerSecond);
    scheduler.add(new Bodies("other", times(3, 100_000)), unlimited);
    const started = Array.from({ length: 4 }, () => start()?.queue.partnerId);
    expect(started).toEqual(["limited", "other", "other", "other"]);
  });
});

interface Load {
  readonly bodies: readonly number[];
  readonly maxInFlight: number;
  readonly maxPerSecond: number | null;
}

describe("nothing starves", () => {
  const load: fc.Arbitrary<Load> = fc.record({
    bodies: fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 12 }),
    maxInFlight: fc.integer({ min: 1, max: 5 }),
    maxPerSecond: fc.option(fc.integer({ min: 1, max: 5 })),
  });

  test("everything is sent in the end, within all bounds", () => {
    const loads = fc.array(load, { minLength: 1, maxLength: 6 });
    const bounds = { slotsMax: fc.integer({ min: 1, max: 6 }), bytesMax: fc.integer({ min: 2, max: 20_000 }) };
    fc.assert(
      fc.property(loads, bounds.slotsMax, bounds.bytesMax, fc.infiniteStream(fc.nat()), (all, slots, bytes, chosen) => {
        const { scheduler, clock, startAll } = schedulerOf(slots, bytes);
        const queues = all.map(({ bodies }, at) => new Bodies(`partner ${at}`, bodies));
        for (const [at, queue] of queues.entries()) {
          scheduler.add(queue, { ...unlimited, ...(all[at] as Load) });
        }
        const inFlight: Slot[] = [];
        for (let rounds = 0; rounds < 400 && queues.some(({ head }) => head !== undefined); rounds += 1) {
          inFlight.push(...startAll().map(({ slot }) => slot));
          expect(scheduler.slotsInUse).toBeLessThanOrEqual(slots);
          expect(scheduler.bytes).toBeLessThanOrEqual(bytes);
          for (const [at, { partnerId }] of queues.entries()) {
            const own = inFlight.filter((slot) => slot.partnerId === partnerId);
            expect(own.length).toBeLessThanOrEqual((all[at] as Load).maxInFlight);
          }
          const [ended] = inFlight.splice(chosen.next().value % Math.max(1, inFlight.length), 1);
          if (ended !== undefined) scheduler.end(ended, true);
          else clock.ms += Math.max(1, scheduler.tokenInMs() ?? 0);
        }
        expect(queues.flatMap(({ waiting }) => waiting)).toEqual([]);
        for (const slot of inFlight) scheduler.end(slot, true);
        expect([scheduler.slotsInUse, scheduler.bytes]).toEqual([0, 0]);
      }),
    );
  });
});
