import { expect, test } from "vitest";
import { readOptions } from "./main.ts";
import { simulate } from "./simulation.ts";

test.each([2, 9, 14])("no invariant is broken in the world of seed %i", async (seed) => {
  const { steps, violation } = await simulate({ seed, steps: 40_000 });
  expect(violation).toBeUndefined();
  expect(steps).toBe(40_000);
});

test("the same seed gives the same run, step by step", async () => {
  const lines = async () => {
    const { tail, simulatedMs } = await simulate({ seed: 5, steps: 20_000 });
    // Ids of leases are made of random bytes; nothing depends on them.
    return [simulatedMs, ...tail(5_000)].map((line) => String(line).replace(/[0-9a-f-]{36}/g, "id"));
  };
  expect(await lines()).toEqual(await lines());
});

test("options that are not understood are refused", () => {
  expect(() => readOptions(["--seed", "-1"], 0)).toThrow(TypeError);
  expect(() => readOptions(["--steps", "many"], 0)).toThrow("--steps must be a whole number");
  expect(readOptions([], 1_234_567_890_123)).toMatchObject({ seed: 567_890_123, steps: 1_000_000 });
});
