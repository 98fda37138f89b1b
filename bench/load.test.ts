import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { drive } from "./load.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("without a rate, each caller calls again once it was answered", async () => {
  let open = 0;
  let mostOpen = 0;
  const calls = new Map<number, number>();
  const driven = drive({ durationMs: 100 }, 4, async (caller) => {
    open += 1;
    mostOpen = Math.max(mostOpen, open);
    calls.set(caller, (calls.get(caller) ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    open -= 1;
  });
  await vi.advanceTimersByTimeAsync(10_000);
  await driven;
  expect(open).toBe(0);
  expect(mostOpen).toBe(4);
  expect([...calls].sort()).toEqual([0, 1, 2, 3].map((caller) => [caller, 20]));
});

test("with a rate, calls come whatever became of those before, and all have ended", async () => {
  let called = 0;
  let ended = 0;
  let mostOpen = 0;
  const driven = drive({ durationMs: 500, ratePerS: 400 }, 2, async (caller) => {
    expect([0, 1]).toContain(caller);
    called += 1;
    mostOpen = Math.max(mostOpen, called - ended);
    await new Promise((resolve) => setTimeout(resolve, 200));
    ended += 1;
  });
  await vi.advanceTimersByTimeAsync(10_000);
  await driven;
  expect(ended).toBe(called);
  // 200 on average: eight times the standard deviation away is a mistake, not chance.
  expect(called).toBeGreaterThan(86);
  expect(called).toBeLessThan(314);
  expect(mostOpen).toBeGreaterThan(2);
});
