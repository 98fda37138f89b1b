import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempDisposableSync } from "node:fs";
import { availableParallelism, homedir, tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { runChecks, staticChecks } from "./tests/checks.ts";
import { countsLine, readReport, type TestReport } from "./tests/report.ts";
import { type Selection, selectAll, selectChanged, selectCore, selectTiers, TierRecord } from "./tests/selection.ts";
import { leftOutVariable, tiers } from "./tests/tiers.ts";

/** Files at once, where tiers are run: half of their time they wait, for leases, restarts and schedules of retries. */
const tierWorkers = availableParallelism() + 4;
const modes = ["--all", "--changed", "--tier"];

// `npm test` runs the static checks and the core, `npm run test:changed` also each tier whose inputs changed, and
// `npm run test:all` every tier. `npm test -- --tier <names>` runs these tiers, and fails without a program that they
// need. `npm test -- <what vitest is to run>` runs that. The last line is the counts.
if (import.meta.main) {
  const cwd = join(import.meta.dirname, "..");
  const given = process.argv.slice(2);
  const mode = given[0];
  const filters = modes.includes(mode ?? "") ? given.slice(1) : given;
  // Kept outside of the work tree, so that a fresh clone on this machine knows it too.
  const recorded = join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "paybell/tiers-passed");
  const record = mode === "--changed" ? new TierRecord(recorded, cwd) : undefined;
  const selection = record === undefined ? selectOrEnd(mode, filters, cwd) : selectChanged(record.passed(), cwd);
  // Started without npm, this still finds the project's own tools first, and its own Node.
  const env = {
    ...process.env,
    PATH: `${join(cwd, "node_modules/.bin")}${delimiter}${process.env["PATH"] ?? ""}`,
    [leftOutVariable]: selection.leftOut.map(({ name }) => name).join(","),
  };
  const write = (text: string) => void process.stdout.write(text);
  write("Static checks\n");
  const checked = await runChecks(staticChecks, { cwd, env }, write);
  write(`\nTests\n${selection.words}\n`);
  const hasTiers = modes.includes(mode ?? "");
  const what = hasTiers ? [`--maxWorkers=${tierWorkers}`, ...(selection.files ?? [])] : filters;
  const report = await runTests(cwd, env, what);
  // A tier that was asked for by name fails, where it could not be run.
  const lacking = mode === "--tier" ? report.lacking : 0;
  const counts = {
    passed: checked.passed + report.counts.passed,
    failed: checked.failed + report.counts.failed + lacking,
    skipped: report.counts.skipped - lacking,
  };
  if (counts.failed === 0 && process.env["CI"] !== undefined)
    record?.note(tiers.filter((tier) => !selection.leftOut.includes(tier)));
  write(`\n${selection.words}\n${report.missing}${countsLine(counts)}\n`);
  process.exitCode = counts.failed === 0 ? 0 : 1;
}

/** A name that no tier has ends the process with the names. */
function selectOrEnd(...what: Parameters<typeof select>): Selection {
  try {
    return select(...what);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
    process.exit(2);
  }
}

function select(mode: string | undefined, names: readonly string[], cwd: string): Selection {
  if (mode === "--tier") return selectTiers(names, cwd);
  if (mode === undefined) return selectCore(cwd);
  return selectAll(mode === "--all" ? "Every tier is run." : "Only what was named is run.");
}

async function runTests(cwd: string, env: NodeJS.ProcessEnv, args: readonly string[]): Promise<TestReport> {
  using directory = mkdtempDisposableSync(join(tmpdir(), "paybell-report-"));
  const report = join(directory.path, "report.json");
  const reporters = ["--reporter=default", "--reporter=json", `--outputFile.json=${report}`];
  const child = spawn("vitest", ["run", ...reporters, ...args], { cwd, env, stdio: ["ignore", "inherit", "inherit"] });
  const [exitCode] = (await once(child, "close")) as [number | null];
  return readReport(report, exitCode, cwd);
}
