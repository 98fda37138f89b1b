import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../ids.ts";
import { RateLimits } from "./rate.ts";

const partnerId = newId<"partner">();

function limits() {
  const clock = { ms: 0 };
  return { clock, rates: new RateLimits(() => clock.ms) };
}

function never(): never {
  throw new Error("unreachable");
}

/** Of any t seconds no more than the rate × t, one second's worth, and one. */
function expectKept(arrivedAtMs: readonly number[], share: number): void {
  for (const [first, fromMs] of arrivedAtMs.entries()) {
    for (const [more, toMs] of arrivedAtMs.slice(first).entries()) {
      expect(more + 1).toBeLessThanOrEqual((share * (toMs - fromMs)) / 1_000 + share + 1 + 1e-6);
    }
  }
}

function takeAll(rates: RateLimits, perSecond: number): number {
  let taken = 0;
  for (let token = rates.take(partnerId, perSecond); token; token = rates.take(partnerId, perSecond)) {
    rates.spend(token);
    taken += 1;
  }
  return taken;
}

describe("a partner's rate", () => {
  test("lets one second's worth leave at once, and then as many as come", () => {
    const { clock, rates } = limits();
    expect(takeAll(rates, 10)).toBe(10);
    expect(rates.waitMs(partnerId, 10)).toBeCloseTo(100);
    clock.ms = 250;
    expect(rates.available(partnerId, 10)).toBe(2);
    expect(takeAll(rates, 10)).toBe(2);
    clock.ms = 60_000;
    expect(takeAll(rates, 10)).toBe(10);
  });

  test("is not counted where there is none", () => {
    const { rates } = limits();
    expect(rates.available(partnerId, null)).toBe(Number.POSITIVE_INFINITY);
    expect(rates.waitMs(partnerId, null)).toBe(0);
    expect(rates.inUse).toBe(false);
  });

  test("is shared by the living instances, and each has a whole token in the end", () => {
    const { clock, rates } = limits();
    takeAll(rates, 1);
    rates.shareAmong(4);
    clock.ms = 3_999;
    expect(rates.take(partnerId, 1)).toBeUndefined();
    clock.ms = 4_000;
    expect(rates.take(partnerId, 1)).toBeDefined();
  });

  test("gives a token back for what was not sent, once", () => {
    const { rates } = limits();
    const token = rates.take(partnerId, 3);
    takeAll(rates, 3);
    if (token) for (let i = 0; i < 3; i += 1) rates.giveBack(token);
    expect(takeAll(rates, 3)).toBe(1);
  });

  test("goes on at a partner that takes long to answer", () => {
    const { clock, rates } = limits();
    for (const [perSecond, answersAfterMs] of [
      [1, 900],
      [10, 5_000],
    ] as const) {
      const partner = newId<"partner">();
      const under: { token: NonNullable<ReturnType<typeof rates.take>>; doneMs: number }[] = [];
      let taken = 0;
      for (const endMs = clock.ms + 60_000; clock.ms < endMs; clock.ms += 10) {
        while (under[0] !== undefined && under[0].doneMs <= clock.ms) rates.spend(under.shift()?.token ?? never());
        const token = rates.take(partner, perSecond);
        if (token === undefined) continue;
        taken += 1;
        under.push({ token, doneMs: clock.ms + answersAfterMs });
      }
      expect(taken).toBeGreaterThanOrEqual(58 * perSecond);
    }
  });

  test("is forgotten once its bucket is full again", () => {
    const { clock, rates } = limits();
    takeAll(rates, 3);
    rates.shareAmong(1);
    expect(rates.inUse).toBe(true);
    clock.ms = 1_000;
    rates.shareAmong(1);
    expect(rates.inUse).toBe(false);
    expect(takeAll(rates, 3)).toBe(3);
  });

  test("is never passed where POSTs arrive, however long each is under way", () => {
    const post = fc.record({
      waitMs: fc.integer({ min: 0, max: 400 }),
      tries: fc.integer({ min: 0, max: 30 }),
      arrivesAfterMs: fc.integer({ min: 0, max: 900 }),
      answeredAfterMs: fc.integer({ min: 0, max: 90 }),
      isSent: fc.boolean(),
    });
    const steps = fc.array(post, { maxLength: 60 });
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 5 }),
        steps,
        (perSecond, living, times) => {
          const { clock, rates } = limits();
          rates.shareAmong(living);
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
              const token = rates.take(partnerId, perSecond);
              if (token === undefined) break;
              const atMs = clock.ms + arrivesAfterMs;
              if (isSent) arrivedAtMs.push(atMs);
              const settle = () => (isSent ? rates.spend(token) : rates.giveBack(token));
              under.push({ atMs: atMs + answeredAfterMs, settle });
            }
          }
          arrivedAtMs.sort((a, b) => a - b);
          expectKept(arrivedAtMs, perSecond / living);
        },
      ),
    );
  });

  test("is used: whoever waits as long as told has a token", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: 9 }), (perSecond, instances) => {
        const { clock, rates } = limits();
        rates.shareAmong(instances);
        takeAll(rates, perSecond);
        clock.ms += rates.waitMs(partnerId, perSecond) + 1e-6;
        expect(rates.take(partnerId, perSecond)).toBeDefined();
      }),
    );
  });
});
