import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { add, countsLine, countTests, type TestCounts } from "./checks/counts.ts";
import { STATIC_CHECKS } from "./checks/list.ts";
import { describeOutcome, runChecks } from "./checks/run.ts";

const PARALLEL_MAX = 2;

// `npm test [-- what vitest is to run]`: the static checks, then every test. The last line is the counts.
if (import.meta.main) {
  const cwd = join(import.meta.dirname, "..");
  // Started without npm, this still finds the project's own tools first, and its own Node.
  const env = { ...process.env, PATH: `${join(cwd, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}` };
  process.stdout.write("Static checks\n");
  const checked = await checkStatically(cwd, env);
  process.stdout.write("\nTests: unit, property, end to end, examples, packages\n");
  const tested = await runTests(cwd, env, process.argv.slice(2));
  const counts = add(checked, tested);
  process.stdout.write(`\n${countsLine(counts)}\n`);
  process.exitCode = counts.failed === 0 ? 0 : 1;
}

async function checkStatically(cwd: string, env: NodeJS.ProcessEnv): Promise<TestCounts> {
  const surroundings = { cwd, env, nowMs: () => performance.now() };
  const outcomes = await runChecks(STATIC_CHECKS, PARALLEL_MAX, surroundings, (outcome) => {
    process.stdout.write(describeOutcome(outcome));
  });
  const passed = outcomes.filter((outcome) => outcome.passed).length;
  return { passed, failed: outcomes.length - passed, skipped: 0 };
}

async function runTests(cwd: string, env: NodeJS.ProcessEnv, filters: readonly string[]): Promise<TestCounts> {
  const directory = mkdtempSync(join(tmpdir(), "paybell-test-"));
  try {
    const report = join(directory, "report.json");
    const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
    const child = spawn("vitest", ["run", ...reporters, ...filters], {
      cwd,
      env,
      stdio: ["ignore", "inherit", "inherit"],
    });
    const exitCode = await new Promise<number | null>((resolve, reject) => {
      child.on("error", reject);
      child.on("close", resolve);
    });
    return countTests(report, exitCode);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
