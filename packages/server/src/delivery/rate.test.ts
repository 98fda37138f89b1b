import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { newId } from "../ids.ts";
import { RateLimits } from "./rate.ts";

const partnerId = newId<"partner">();

function limits() {
  const clock = { ms: 0 };
  return { clock, rates: new RateLimits(() => clock.ms) };
}

function takeAll(rates: RateLimits, perSecond: number): number {
  let taken = 0;
  while (rates.take(partnerId, perSecond)) taken += 1;
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
    for (let i = 0; i < 10_000; i += 1) expect(rates.take(partnerId, null)).toBe(true);
    expect(rates.waitMs(partnerId, null)).toBe(0);
    expect(rates.inUse).toBe(false);
  });

  test("is shared by the living instances, and each has a whole token in the end", () => {
    const { clock, rates } = limits();
    takeAll(rates, 1);
    rates.shareAmong(4);
    clock.ms = 3_999;
    expect(rates.take(partnerId, 1)).toBe(false);
    clock.ms = 4_000;
    expect(rates.take(partnerId, 1)).toBe(true);
  });

  test("gives a token back for what was not sent", () => {
    const { rates } = limits();
    takeAll(rates, 3);
    rates.give(partnerId);
    expect(takeAll(rates, 3)).toBe(1);
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

  test("is never passed: of any time of t seconds no more than the rate × t, and one second's worth", () => {
    const steps = fc.array(
      fc.record({ waitMs: fc.integer({ min: 0, max: 3_000 }), tries: fc.integer({ min: 0, max: 40 }) }),
      {
        maxLength: 60,
      },
    );
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 50 }),
        fc.integer({ min: 1, max: 5 }),
        steps,
        (perSecond, instances, times) => {
          const { clock, rates } = limits();
          rates.shareAmong(instances);
          const sentAtMs: number[] = [];
          for (const { waitMs, tries } of times) {
            clock.ms += waitMs;
            for (let i = 0; i < tries; i += 1) if (rates.take(partnerId, perSecond)) sentAtMs.push(clock.ms);
          }
          const share = perSecond / instances;
          for (const [first, fromMs] of sentAtMs.entries()) {
            const last = sentAtMs.length - 1;
            const sinceS = ((sentAtMs[last] ?? 0) - fromMs) / 1_000;
            expect(last - first + 1).toBeLessThanOrEqual(share * sinceS + Math.max(1, share) + 1e-6);
          }
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
        expect(rates.take(partnerId, perSecond)).toBe(true);
      }),
    );
  });
});
