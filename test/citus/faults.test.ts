import { afterAll, expect, test } from "vitest";
import { Cleanup } from "../../bench/command.ts";
import { runFaults } from "../../faults/main.ts";
import { readOptions } from "../../faults/plan.ts";

const cleanup = new Cleanup();
afterAll(() => cleanup.run());

test("each fault of Citus' short form happens once, and every promise is kept", { timeout: 900_000 }, async () => {
  const progress: string[] = [];
  const options = readOptions(["--citus", "--quick", "--seed", "1"]);
  const verdict = await runFaults(options, cleanup, (line) => void progress.push(line));
  expect(verdict.broken, progress.join("\n")).toEqual([]);
  expect(verdict).toMatchObject({ lost: 0, ghosts: 0, orderViolations: 0 });
});
