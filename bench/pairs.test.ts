import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Cleanup } from "./command.ts";
import { readOptions } from "./options.ts";
import { measurePairs, pairLines, pairSummary } from "./pairs.ts";

const root = join(import.meta.dirname, "..");
const { pairs: plan } = readOptions(["--smoke"]);

test("another checkout is measured in turns with this one", async () => {
  const cleanup = new Cleanup();
  onTestFinished(() => cleanup.run());
  const result = await measurePairs(root, plan, cleanup, () => undefined);
  expect(result.rows).toHaveLength(7);
  for (const { rate, processor } of result.rows) {
    expect(rate.median).toBeGreaterThan(0);
    expect(processor.median).toBeGreaterThan(0);
  }
  for (const { times } of result.latency) for (const { p50Ms } of times) expect(p50Ms).toBeGreaterThanOrEqual(0);
  expect(pairLines(result).join("\n")).toMatch(/^service: POST \S+ +rate \d/m);
  // Programs read this line: no key less, and none more.
  expect(pairSummary(result)).toEqual(
    Object.fromEntries(
      ["singles", "batches", "cpu", "cpu_200", "memory", "p99_1000"].map((name) => [name, expect.any(Number)]),
    ),
  );
});

test("an option that does not apply to two checkouts is refused", () => {
  expect(readOptions(["--against", root, "--quick"]).against).toBe(root);
  for (const option of [
    ["--only", "batches"],
    ["--rounds", "2"],
    ["--round-ms", "9"],
    ["--rate", "7"],
  ]) {
    expect(() => readOptions(["--against", root, ...option]), option[0]).toThrow(`--against takes no ${option[0]}`);
  }
});

test("a folder that is no checkout is refused by name", async () => {
  const measuring = measurePairs("/nowhere", plan, new Cleanup(), () => undefined);
  await expect(measuring).rejects.toThrow("/nowhere/bench/processes/service.ts is not there");
});
