import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Cleanup, runCommand } from "../bench/command.ts";
import { type FaultOptions, type FaultSeries, planOf, readOptions, usage } from "./plan.ts";
import { openUp } from "./postgres.ts";
import { seeded } from "./random.ts";
import { runSeries } from "./series.ts";
import { type RunVerdict, slowdownText, together } from "./verdict.ts";

async function run(cleanup: Cleanup): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  const verdict = await runFaults(options, cleanup, (line) => process.stderr.write(`${line}\n`));
  for (const line of verdict.broken) process.stdout.write(`${line}\n`);
  process.stdout.write(`${verdict.settlements} settlements were held against the IPNs of their batches\n`);
  for (const [fault, slowdown] of verdict.slowdowns) process.stdout.write(`${slowdownText(fault, slowdown)}\n`);
  process.stdout.write(`${JSON.stringify(summaryOf(options.seed, verdict))}\n`);
  return verdict.broken.length === 0 ? 0 : 1;
}

/** Everything that was asked for, series by series. @param write takes a line of progress */
export async function runFaults(
  options: FaultOptions,
  cleanup: Cleanup,
  write: (line: string) => void,
): Promise<RunVerdict> {
  const startedMs = performance.now();
  const note = (line: string) =>
    write(`${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(5)} s  ${line}`);
  const random = seeded(options.seed);
  const allSeries = planOf(options, random.fork("plan"));
  const faults = allSeries.reduce((sum, series) => sum + series.faults.length, 0);
  note(`seed ${options.seed}: ${faults} faults on ${allSeries.length} stages`);
  const folder = await mkdtemp(join(tmpdir(), "paybell-faults-"));
  cleanup.addFolder(folder);
  await openUp(folder);
  const verdicts: RunVerdict[] = [];
  const runOne = async (series: FaultSeries, at: number) => {
    const noteStage = (line: string) => note(`stage ${at + 1}: ${line}`);
    noteStage(
      `${series.stage.instances} instances${series.stage.hasStandby ? " and a standby" : ""}, ${series.faults.length} faults`,
    );
    const plan = {
      series,
      folder: join(folder, `stage-${at}`),
      commandsOfRound: Math.ceil(options.commands / faults),
      perSecond: options.perSecond / options.stages,
      isQuick: options.quick,
    };
    const verdict = await runSeries(plan, random.fork(`stage ${at}`), cleanup, noteStage);
    verdicts.push(verdict);
    for (const line of verdict.broken) noteStage(`BROKEN ${line}`);
    noteStage(`so far ${JSON.stringify(summaryOf(options.seed, together(verdicts)))}`);
  };
  const left = allSeries.entries();
  const runNext = async () => {
    for (const [at, series] of left) await runOne(series, at);
  };
  await Promise.all(Array.from({ length: options.stages }, runNext));
  return together(verdicts);
}

/** The line for programs. */
export function summaryOf(seed: number, verdict: RunVerdict) {
  return {
    seed,
    faults: verdict.faults,
    commands: verdict.commands,
    lost: verdict.lost,
    ghosts: verdict.ghosts,
    duplicates: verdict.duplicates,
    order_violations: verdict.orderViolations,
    slowest_recovery_s: Number((verdict.slowestRecoveryMs / 1_000).toFixed(2)),
  };
}

// `npm run faults [-- options]`: progress on stderr; on stdout what was broken, then one line of JSON.
if (import.meta.main) process.exit(await runCommand(run, usage));
