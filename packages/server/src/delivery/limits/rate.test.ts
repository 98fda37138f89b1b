import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../../ids.ts";
import { RateLimits, type Token } from "./rate.ts";

const partnerId = newId<"partner">();

function limits() {
  const clock = { ms: 0 };
  return { clock, rates: new RateLimits(() => clock.ms) };
}

function never(): never {
  throw new Error("unreachable");
}

/** In any t seconds at most rate × t POSTs, one second's worth, and one more. */
function expectKept(arrivedAtMs: readonly number[], share: number): void {
  for (const [first, fromMs] of arrivedAtMs.entries()) {
    for (const [more, toMs] of arrivedAtMs.slice(first).entries()) {
      expect(more + 1).toBeLessThanOrEqual((share * (toMs - fromMs)) / 1_000 + share + 1 + 1e-6);
    }
  }
}

/** Owned for so long that its bucket is full. */
const ownedLongAgoMs = -60_000;

function takeAll(rates: RateLimits, perSecond: number, sinceMs = ownedLongAgoMs): number {
  let taken = 0;
  for (;;) {
    const token = rates.acquire(partnerId, perSecond, sinceMs);
    if (token === undefined) return taken;
    rates.end(token, true);
    taken += 1;
  }
}

describe("a partner's rate", () => {
  test("lets one second's worth leave at once, and then as many as come", () => {
    const { clock, rates } = limits();
    expect(takeAll(rates, 10)).toBe(10);
    expect(rates.waitMs(partnerId, 10, ownedLongAgoMs)).toBeCloseTo(100);
    clock.ms = 250;
    expect(takeAll(rates, 10)).toBe(2);
    clock.ms = 60_000;
    expect(takeAll(rates, 10)).toBe(10);
  });

  test("begins empty if its shard was just claimed: the previous owner may have used it up", () => {
    const { clock, rates } = limits();
    expect(takeAll(rates, 10, clock.ms)).toBe(0);
    clock.ms = 300;
    expect(takeAll(rates, 10, 0)).toBe(3);
  });

  test("begins empty again if the shard was lost and claimed again", () => {
    const { clock, rates } = limits();
    expect(takeAll(rates, 10)).toBe(10);
    clock.ms = 60_000;
    rates.forget((id) => id === partnerId);
    expect(takeAll(rates, 10, clock.ms)).toBe(0);
  });

  test("gets a token back for a POST that was not sent, once", () => {
    const { rates } = limits();
    const token = rates.acquire(partnerId, 3, ownedLongAgoMs) ?? never();
    takeAll(rates, 3);
    for (let i = 0; i < 3; i += 1) rates.end(token, false);
    expect(takeAll(rates, 3)).toBe(1);
  });

  test("waits for the oldest POST without a response if as many are outstanding as may be", () => {
    const { clock, rates } = limits();
    for (; clock.ms < 120; clock.ms += 10) rates.acquire(partnerId, 10, ownedLongAgoMs);
    expect(rates.waitMs(partnerId, 10, ownedLongAgoMs)).toBe(1_000 - 120);
  });

  test("continues at a partner that takes long to respond", () => {
    const { clock, rates } = limits();
    for (const [perSecond, answersAfterMs] of [
      [1, 900],
      [10, 5_000],
    ] as const) {
      const partner = newId<"partner">();
      const under: { token: Token; doneMs: number }[] = [];
      let taken = 0;
      for (const endMs = clock.ms + 60_000; clock.ms < endMs; clock.ms += 10) {
        while (under[0] !== undefined && under[0].doneMs <= clock.ms) rates.end(under.shift()?.token ?? never(), true);
        const token = rates.acquire(partner, perSecond, ownedLongAgoMs);
        if (token === undefined) continue;
        taken += 1;
        under.push({ token, doneMs: clock.ms + answersAfterMs });
      }
      expect(taken).toBeGreaterThanOrEqual(58 * perSecond);
    }
  });

  test("is never exceeded where POSTs arrive, however long each is in flight", () => {
    const post = fc.record({
      waitMs: fc.integer({ min: 0, max: 400 }),
      tries: fc.integer({ min: 0, max: 30 }),
      arrivesAfterMs: fc.integer({ min: 0, max: 900 }),
      answeredAfterMs: fc.integer({ min: 0, max: 90 }),
      isSent: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), fc.array(post, { maxLength: 12 }), (perSecond, times) => {
        const { clock, rates } = limits();
        const arrivedAtMs: number[] = [];
        let under: { atMs: number; settle: () => void }[] = [];
        const goOnTo = (untilMs: number) => {
          under.sort((a, b) => a.atMs - b.atMs);
          for (const { atMs, settle } of under.filter((one) => one.atMs <= untilMs)) {
            clock.ms = atMs;
            settle();
          }
          under = under.filter((one) => one.atMs > untilMs);
          clock.ms = untilMs;
        };
        for (const { waitMs, tries, arrivesAfterMs, answeredAfterMs, isSent } of times) {
          goOnTo(clock.ms + waitMs);
          for (let i = 0; i < tries; i += 1) {
            const token = rates.acquire(partnerId, perSecond, ownedLongAgoMs);
            if (token === undefined) break;
            const atMs = clock.ms + arrivesAfterMs;
            if (isSent) arrivedAtMs.push(atMs);
            under.push({ atMs: atMs + answeredAfterMs, settle: () => rates.end(token, isSent) });
          }
        }
        arrivedAtMs.sort((a, b) => a - b);
        expectKept(arrivedAtMs, perSecond);
      }),
    );
  });

  test("is used completely: after the announced wait there is a token", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), (perSecond) => {
        const { clock, rates } = limits();
        takeAll(rates, perSecond);
        clock.ms += rates.waitMs(partnerId, perSecond, ownedLongAgoMs) + 1e-6;
        expect(rates.acquire(partnerId, perSecond, ownedLongAgoMs)).toBeDefined();
      }),
    );
  });
});
