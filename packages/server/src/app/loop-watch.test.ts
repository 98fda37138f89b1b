import { expect, onTestFinished, test } from "vitest";
import { causeOf, watchLoop } from "./loop-watch.ts";

test("an event loop that was blocked for more than a second is logged with its cause", async () => {
  const lines: (readonly [object, string])[] = [];
  onTestFinished(watchLoop({ warn: (fields, message) => void lines.push([fields, message]) }));
  await new Promise((resolve) => setTimeout(resolve, 300));
  const untilMs = performance.now() + 2_000;
  while (performance.now() < untilMs);
  await expect.poll(() => lines.map(([, message]) => message)).toContain("the event loop was blocked");
  const [[fields] = []] = lines as readonly (readonly [{ blockedMs: number; cause: string }, string])[];
  expect(fields?.blockedMs).toBeGreaterThan(1_000);
  expect(fields?.cause).toBeDefined();
});

test("the cause is what took most of the time", () => {
  expect(causeOf({ forMs: 2_000, processorMs: 2_900, collectingMs: 1_500 })).toContain("garbage collection");
  expect(causeOf({ forMs: 2_000, processorMs: 1_900, collectingMs: 100 })).toContain("work of its own");
  expect(causeOf({ forMs: 2_000, processorMs: 200, collectingMs: 20 })).toContain("the machine");
});
