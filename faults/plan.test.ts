import { expect, test } from "vitest";
import { catalogue } from "./catalogue.ts";
import { planOf, readOptions } from "./plan.ts";
import { seeded } from "./random.ts";

const named = (argv: readonly string[], seed = 1) =>
  planOf(readOptions(argv), seeded(seed)).map(({ stage, faults }) => [stage.instances, faults.map(({ name }) => name)]);

const withoutCitus = catalogue.filter(({ needs }) => needs !== "Citus");

test("the same seed plans the same run, and another seed another run", () => {
  expect(named([], 7)).toEqual(named([], 7));
  expect(named([], 7)).not.toEqual(named([], 8));
});

test("a long run has the requested number of faults, and each fault many times", () => {
  const all = planOf(readOptions(["--faults", "500"]), seeded(3)).flatMap(({ faults }) => faults);
  expect(all).toHaveLength(500);
  for (const { name } of withoutCitus)
    expect(all.filter((fault) => fault.name === name).length, name).toBeGreaterThan(4);
});

test("fewer faults have fewer commands, and a stage no more than its disk holds", () => {
  expect(readOptions([])).toMatchObject({ faults: 500, commands: 1_000_000 });
  expect(readOptions(["--faults", "60"])).toMatchObject({ faults: 60, commands: 120_000 });
  expect(named(["--faults", "60", "--commands", "600000"])).toHaveLength(3);
  expect(() => named(["--faults", "60", "--commands", "600001"])).toThrow(
    /60, --commands is at most 600000: .* 600001$/,
  );
  expect(() => named(["--only", "kill-service", "--commands", "240001"])).toThrow("--commands is at most 240000: ");
});

test("each fault is planned on a stage that has what it needs", () => {
  for (const { stage, faults } of planOf(readOptions([]), seeded(5))) {
    for (const { needs } of faults) {
      if (needs === "one instance" || needs === "a small disk") expect(stage.instances).toBe(1);
      if (needs === "several instances") expect(stage.instances).toBe(4);
      if (needs === "a standby") expect(stage.hasStandby).toBe(true);
    }
  }
});

test("the short form has each of its faults once", () => {
  const quick = planOf(readOptions(["--quick"]), seeded(1)).flatMap(({ faults }) => faults.map(({ name }) => name));
  expect(quick.toSorted()).toEqual(
    withoutCitus
      .filter(({ isQuick }) => isQuick)
      .map(({ name }) => name)
      .toSorted(),
  );
});

test("--only names faults, which happen once on each stage unless more are asked for", () => {
  expect(named(["--only", "kill-service"])).toEqual([[1, ["kill-service"]]]);
  expect(named(["--only", "kill-one-of-several", "--faults", "3"])).toEqual([
    [4, ["kill-one-of-several", "kill-one-of-several", "kill-one-of-several"]],
  ]);
  expect(() => readOptions(["--only", "kill-servce"])).toThrow(/kill-servce$/);
  expect(() => readOptions(["--faults", "0"])).toThrow(/--faults/);
});

test("--only lets a fault that can happen anywhere happen on every kind of stage", () => {
  expect(named(["--only", "names-failing"])).toEqual([
    [1, ["names-failing"]],
    [4, ["names-failing"]],
  ]);
});

test("--citus has a stage of its own, with what happens to its nodes and what can happen anywhere", () => {
  const allSeries = planOf(readOptions(["--citus", "--quick"]), seeded(1));
  expect(allSeries.map(({ stage }) => stage)).toMatchObject([{ isCitus: true, instances: 2, hasStandby: false }]);
  const names = allSeries.flatMap(({ faults }) => faults.map(({ name }) => name));
  for (const name of ["kill-worker", "worker-cut", "kill-both", "stop-one-of-several"]) expect(names).toContain(name);
  expect(names).not.toContain("failover-to-the-standby");
});

test("random numbers stay within their bounds, and differ by name", () => {
  const random = seeded(9);
  const drawn = Array.from({ length: 1_000 }, () => random.within(3, 5));
  expect(new Set(drawn)).toEqual(new Set([3, 4, 5]));
  expect(random.shuffled([1, 2, 3, 4]).toSorted()).toEqual([1, 2, 3, 4]);
  expect(random.fork("a").next()).not.toBe(random.fork("b").next());
});
