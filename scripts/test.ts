import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { add, countsLine, countTests, type TestCounts } from "./checks/counts.ts";
import { STATIC_CHECKS } from "./checks/list.ts";
import { describeMissing, failMissing, type Missing, readMissing } from "./checks/missing.ts";
import { describeOutcome, runChecks } from "./checks/run.ts";
import { changesSince, recordPassed } from "./tests/changes.ts";
import { type Selection, selectAll, selectChanged, selectCore, selectTiers } from "./tests/selection.ts";
import { leftOutVariable } from "./tests/tiers.ts";

const PARALLEL_MAX = 2;
/** Files of tiers at once: they wait more than those of the core, for leases, restarts and schedules of retries. */
const TIER_WORKERS = availableParallelism() + 2;

const none: TestCounts = { passed: 0, failed: 0, skipped: 0 };

// `npm test` runs the static checks and the core, `npm run test:changed` each tier whose inputs changed, and
// `npm run test:all` all of these. `npm test -- --tier <names>` runs these tiers, and fails without a program that they
// need. `npm test -- <what vitest is to run>` runs that. The last line is the counts.
if (import.meta.main) {
  const cwd = join(import.meta.dirname, "..");
  // Kept outside of the work tree, so that a fresh clone on this machine knows it too.
  const record = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "paybell/commit-passed");
  const [mode, ...others] = process.argv.slice(2);
  const selection = select(mode, others, cwd, record);
  // Started without npm, this still finds the project's own tools first, and its own Node.
  const env = {
    ...process.env,
    PATH: `${join(cwd, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    [leftOutVariable]: selection.leftOut.map(({ name }) => name).join(","),
  };
  // After `npm test`, which made them.
  const checked = mode === "--changed" ? none : await checkStatically(cwd, env);
  process.stdout.write(`\nTests\n${selection.words}\n`);
  const filters = selection.files ?? (isMode(mode) ? others : process.argv.slice(2));
  const { tested, missing } =
    selection.files?.length === 0
      ? { tested: none, missing: { count: 0, tests: new Map() } }
      : await runTests(cwd, env, [...(selection.files ? [`--maxWorkers=${TIER_WORKERS}`] : []), ...filters]);
  const counts = add(checked, mode === "--tier" ? failMissing(tested, missing) : tested);
  if (mode === "--changed" && counts.failed === 0 && process.env["CI"] !== undefined) recordPassed(record, cwd);
  process.stdout.write(`\n${selection.words}\n${describeMissing(missing)}${countsLine(counts)}\n`);
  process.exitCode = counts.failed === 0 ? 0 : 1;
}

function isMode(argument: string | undefined): boolean {
  return argument === "--all" || argument === "--changed" || argument === "--tier";
}

function select(mode: string | undefined, others: readonly string[], cwd: string, record: string): Selection {
  if (mode === "--tier") return selectTiers(others, cwd);
  if (mode === undefined) return selectCore(cwd);
  if (mode === "--changed") return selectChanged(changesSince(record, cwd), cwd);
  return selectAll(mode === "--all" ? "Every tier is run." : "Only what was named is run.");
}

async function checkStatically(cwd: string, env: NodeJS.ProcessEnv): Promise<TestCounts> {
  process.stdout.write("Static checks\n");
  const surroundings = { cwd, env, nowMs: () => performance.now() };
  const outcomes = await runChecks(STATIC_CHECKS, PARALLEL_MAX, surroundings, (outcome) => {
    process.stdout.write(describeOutcome(outcome));
  });
  const passed = outcomes.filter((outcome) => outcome.passed).length;
  return { passed, failed: outcomes.length - passed, skipped: 0 };
}

interface Tested {
  readonly tested: TestCounts;
  readonly missing: Missing;
}

async function runTests(cwd: string, env: NodeJS.ProcessEnv, filters: readonly string[]): Promise<Tested> {
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
    return { tested: countTests(report, exitCode), missing: readMissing(report, cwd) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
