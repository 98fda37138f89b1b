import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { within } from "./clock.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("work that ends in time ends the wait, and its timer", async () => {
  expect(await within(20, Promise.resolve("done"))).toBe("done");
  await expect(within(20, Promise.reject(new Error("failed")))).rejects.toThrow("failed");
  expect(vi.getTimerCount()).toBe(0);
});

test("work that takes longer is not waited for, and its failure is nobody's", async () => {
  const work = Promise.withResolvers<string>();
  const waited = within(20, work.promise);
  vi.advanceTimersByTime(20);
  expect(await waited).toBeUndefined();
  work.reject(new Error("late"));
});
