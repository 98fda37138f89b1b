import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RateLimit } from "./rate-limit.ts";

function limited(perMinute: number) {
  const clock = { nowMs: 1_000, monotonicMs: () => clock.nowMs };
  return { clock, limit: new RateLimit(perMinute, clock) };
}

describe("a rate", () => {
  test("allows its number in a minute that begins with the first", () => {
    const { clock, limit } = limited(3);
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 2, resetS: 60 });
    clock.nowMs += 30_000;
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 1, resetS: 30 });
    limit.count("a");
    expect(limit.count("a")).toEqual({ allowed: false, remaining: 0, resetS: 30 });
    clock.nowMs += 30_000;
    expect(limit.count("a")).toEqual({ allowed: true, remaining: 2, resetS: 60 });
  });

  test("of one key does not affect another's", () => {
    const { limit } = limited(1);
    expect(limit.count("a").allowed).toBe(true);
    expect(limit.count("b").allowed).toBe(true);
    expect(limit.count("a").allowed).toBe(false);
  });

  test("counts a more expensive request several times", () => {
    const { limit } = limited(10);
    expect(limit.count("a", 8)).toMatchObject({ allowed: true, remaining: 2 });
    expect(limit.count("a", 8).allowed).toBe(false);
    expect(limit.count("a", 2)).toMatchObject({ allowed: true, remaining: 0 });
  });

  test("never allows more than twice its number within a minute", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 200 }), fc.array(fc.integer({ min: 0, max: 5_000 })), (perMinute, gaps) => {
        const { clock, limit } = limited(perMinute);
        const allowedAt: number[] = [];
        for (const gap of gaps) {
          clock.nowMs += gap;
          if (limit.count("a").allowed) allowedAt.push(clock.nowMs);
        }
        const lately = allowedAt.filter((at) => at > clock.nowMs - 60_000).length;
        expect(lately).toBeLessThanOrEqual(2 * perMinute);
      }),
    );
  });

  test("forgets keys beyond its bound, and stays within it", () => {
    const { limit } = limited(1);
    for (let count = 0; count < 20_001; count += 1) limit.count(`key ${count}`);
    expect(limit.count("key 0").allowed).toBe(true);
    expect(limit.count("key 20000").allowed).toBe(false);
  });
});
