import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type StopParts, stopInOrder } from "./stop.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A stop whose steps are recorded; `change` replaces parts of it. */
function stopping(change: Partial<StopParts> = {}) {
  const done: string[] = [];
  const stopped = stopInOrder({
    leaseMs: () => 5_000,
    noticeMs: 3_000,
    drainMs: 35_000,
    onTrouble: () => done.push("trouble"),
    drain: async () => done.push("drained"),
    closing: [() => done.push("links")],
    released: [() => done.push("lease")],
    ...change,
  });
  return { done, stopped };
}
const never = () => new Promise<never>(() => undefined);

test("nothing is refused while the proxies are given notice, and then one step follows the other", async () => {
  const { done, stopped } = stopping();
  await vi.advanceTimersByTimeAsync(2_900);
  expect(done).toEqual([]);
  await vi.advanceTimersByTimeAsync(100);
  await stopped;
  expect(done).toEqual(["drained", "links", "lease"]);
});

test("a drain that does not end is given up in time, and a step that fails stops no other", async () => {
  const fails = () => Promise.reject(new Error("it cannot be closed"));
  const { done, stopped } = stopping({ noticeMs: 0, drain: never, closing: [fails] });
  await vi.advanceTimersByTimeAsync(34_900);
  expect(done).toEqual([]);
  await vi.advanceTimersByTimeAsync(100);
  await stopped;
  expect(done).toEqual(["trouble", "lease"]);
});

test("without a database no step is waited for", async () => {
  const { done, stopped } = stopping({
    leaseMs: () => 0,
    drain: never,
    closing: [never, never, () => done.push("links")],
    released: [never, () => done.push("database")],
  });
  await vi.advanceTimersByTimeAsync(2_000);
  await stopped;
  expect(done).toEqual(["links", "database"]);
});

test("a database that goes away meanwhile ends the waiting, as soon as the lease does", async () => {
  let leaseMs = 5_000;
  const { done, stopped } = stopping({ drain: never, leaseMs: () => leaseMs });
  await vi.advanceTimersByTimeAsync(3_000);
  leaseMs = 0;
  await vi.advanceTimersByTimeAsync(1_000);
  await stopped;
  expect(done).toEqual(["links", "lease"]);
});

test("a lease that an instance which stood still believed lost ends no waiting once its beat's answer is read", async () => {
  let leaseMs = 5_000;
  const step = Promise.withResolvers<void>();
  const { done, stopped } = stopping({ noticeMs: 0, leaseMs: () => leaseMs, closing: [() => step.promise] });
  await vi.advanceTimersByTimeAsync(100);
  leaseMs = 0;
  await vi.advanceTimersByTimeAsync(100);
  leaseMs = 5_000;
  await vi.advanceTimersByTimeAsync(1_000);
  expect(done).toEqual(["drained"]);
  step.resolve();
  await stopped;
  expect(done).toEqual(["drained", "lease"]);
});
