import { afterAll, beforeAll, expect, test } from "vitest";
import { type BenchResult, runBench } from "./bench.ts";
import { Cleanup } from "./command.ts";
import { readOptions } from "./options.ts";
import { summary, tableLines } from "./report.ts";
import { percentile, spread } from "./statistics.ts";

// One environment for all parts, as in a full run: to start another takes longer than to measure most of them.
const cleanup = new Cleanup();
let result: BenchResult;
beforeAll(async () => {
  const parts = "raw,plain,engine,service,batches,commands,latency,burst,backlog,recovery";
  const options = readOptions(["--smoke", "--only", parts]);
  result = await runBench(options, cleanup, () => undefined);
}, 600_000);
afterAll(() => cleanup.run());

const table = () => tableLines(result).join("\n");

test("the bench measures raw, the plain loop, the engine, the service and its latency", () => {
  const measured = expect.any(Number);
  // Programs read this line: no key less, and none more.
  expect(summary(result)).toEqual({
    raw_per_s: measured,
    engine_per_s: measured,
    service_per_s: measured,
    bullmq_per_s: null,
    engine_raw_ratio: measured,
    service_raw_ratio: measured,
    engine_bullmq_ratio: null,
    engine_plain_ratio: measured,
    cpu_plain_ratio: measured,
    memory_mb: measured,
    latency_p50_ms: measured,
    latency_p99_ms: measured,
  });
  expect(table()).toContain("engine: completions in process");
  expect(table()).toContain("plain loop: commit, POST, record");
});

test("the bench measures a burst, and a backlog with what each statement cost", () => {
  expect(result.burst?.completions).toBe(200);
  expect(result.backlog?.statements.map(({ query }) => query).join("\n")).toContain("INSERT INTO attempts");
  expect(table()).toContain("a burst of 200");
  expect(table()).toContain("drain with 2000 pending");
});

test("the bench lets all receivers come back at once: what was accepted meanwhile is delivered", () => {
  // Down for so short a time, a circuit need not have opened, and without one no probe goes ahead.
  expect(result.recovery?.lost).toBe(0);
  expect(result.recovery?.completions).toBeGreaterThan(0);
  expect(table()).toContain("recovery after 0.3 s down");
});

test("an unknown part is refused by its name", () => {
  expect(() => readOptions(["--only", "raw,engin"])).toThrow(/engin$/);
  expect(() => readOptions(["--rounds", "0"])).toThrow(/--rounds/);
});

test("a percentile is a value that occurred, an even median the mean of the middle two", () => {
  expect(percentile([3, 1, 2], 50)).toBe(2);
  expect(percentile([4, 1, 2, 3], 50)).toBe(2.5);
  expect(percentile([...Array(100).keys()], 99)).toBe(98);
  expect(percentile([], 50)).toBeNaN();
  expect(spread([0.5, 0.3, 0.4])).toEqual({ median: 0.4, min: 0.3, max: 0.5 });
});
