import { setImmediate } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { createLog } from "../telemetry/log.ts";
import { backoffMs, type DueKind, DueWatch, DueWork } from "./due-work.ts";

const log = createLog("error", { write: () => undefined });
afterEach(() => void vi.useRealTimers());

/** Each claim finds what was due when it began, and ends when the test lets it. */
class Work extends DueWork<string> {
  readonly due: string[] = [];
  readonly done: string[] = [];
  readonly claims: PromiseWithResolvers<void>[] = [];

  constructor() {
    super("work", log);
    this.start();
  }

  protected async claim(): Promise<readonly string[]> {
    const found = this.due.splice(0);
    const claim = Promise.withResolvers<void>();
    this.claims.push(claim);
    await claim.promise;
    return found;
  }

  protected async run(item: string): Promise<void> {
    await setImmediate();
    this.done.push(item);
  }
}

test("what becomes due during a claim is claimed after it", async () => {
  const work = new Work();
  work.wake();
  work.due.push("later");
  work.wake();
  work.claims[0]?.resolve();
  await expect.poll(() => work.claims).toHaveLength(2);
  work.claims[1]?.resolve();
  await expect.poll(() => work.done).toEqual(["later"]);
  await work.stop();
});

test.each([0, 1, 2, 3, 4])("what becomes due %i microtasks after a claim is claimed, too", async (microtasks) => {
  const work = new Work();
  work.wake();
  work.claims[0]?.resolve();
  for (let passed = 0; passed < microtasks; passed += 1) await Promise.resolve();
  work.due.push("late");
  work.wake();
  await setImmediate();
  work.claims[1]?.resolve();
  await setImmediate();
  await setImmediate();
  expect(work.done).toEqual(["late"]);
  await work.stop();
});

test("a stop waits for a claim, and for what it has claimed", async () => {
  const work = new Work();
  work.due.push("claimed");
  work.wake();
  const stopped = work.stop().then(() => work.done.push("stopped"));
  await setImmediate();
  work.claims[0]?.resolve();
  await stopped;
  expect(work.done).toEqual(["claimed", "stopped"]);
});

test("due work is looked for again after the database was away", async () => {
  vi.useFakeTimers();
  const due = vi.fn<() => Promise<readonly DueKind[]>>().mockRejectedValueOnce(new Error("away"));
  due.mockResolvedValue(["reversals"]);
  const reversals = vi.fn();
  const watch = new DueWatch({ store: { due }, log, wake: { reversals } as never });
  watch.start();
  await vi.advanceTimersByTimeAsync(2_000);
  watch.stop();
  expect(reversals).toHaveBeenCalledOnce();
});

test("what is not answered is repeated after a second, and less and less often, down to once a minute", () => {
  const waits = Array.from({ length: 8 }, (_, nth) => backoffMs(nth + 1));
  expect(waits).toEqual([1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 60_000, 60_000]);
});
