import { afterAll, beforeAll, expect, test } from "vitest";
import { type BenchResult, runBench } from "./bench.ts";
import { Cleanup } from "./environment.ts";
import { readOptions } from "./options.ts";
import { summary, tableLines } from "./report.ts";
import { percentile, spread } from "./statistics.ts";

// One environment for all parts, as in a full run: to start another takes longer than to measure most of them.
const cleanup = new Cleanup();
let result: BenchResult;
beforeAll(async () => {
  const parts = "raw,plain,engine,service,latency,sale-latency,backlog,restart,session,scale";
  const options = readOptions(["--smoke", "--only", parts, "--round-ms", "50"]);
  result = await runBench(options, cleanup, () => undefined);
}, 600_000);
afterAll(() => cleanup.run());

const table = () => tableLines(result).join("\n");

test("the bench measures raw, the engine, the service and both latencies, and leaves nothing running", () => {
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
    latency_p50_ms: measured,
    latency_p99_ms: measured,
  });
  expect(result.saleLatency?.p50Ms).toBeGreaterThan(0);
  expect(table()).toContain("engine: completions in process");
  expect(table()).toContain("plain loop: commit, POST, record");
});

test("the bench measures a backlog and several instances, and says what each statement cost", () => {
  expect(result.backlog?.statements.map(({ query }) => query).join("\n")).toContain("INSERT INTO attempts");
  expect(result.scale?.map(({ instances }) => instances)).toEqual([1, 2]);
  expect(table()).toContain("2 instances");
});

test("the bench restarts PostgreSQL in both manners, and counts what was accepted and what came", () => {
  expect(result.restart).toMatchObject([
    { manner: "fast", lost: 0 },
    { manner: "immediate", lost: 0 },
  ]);
  for (const { accepted } of result.restart ?? []) expect(accepted).toBeGreaterThan(0);
  expect(table()).toContain("PostgreSQL restarted, immediate");
});

test("the bench sells over one session of two instances, and kills the one that has it", () => {
  const { holderPerS = 0, otherPerS = 0, takeoverMs = 0 } = result.session ?? {};
  expect(holderPerS).toBeGreaterThan(0);
  expect(otherPerS).toBeGreaterThan(0);
  expect(takeoverMs).toBeGreaterThan(0);
  expect(table()).toContain("one session for two instances");
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
