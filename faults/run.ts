import { chmod, mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Cleanup } from "../bench/environment.ts";
import type { FaultOptions } from "./options.ts";
import { type FaultSeries, planOf } from "./plan.ts";
import { seeded } from "./random.ts";
import { runSeries } from "./series.ts";
import { type RunVerdict, together } from "./verdict.ts";

/** Everything that was asked for, act by act. @param write takes a line of progress */
export async function runFaults(
  options: FaultOptions,
  cleanup: Cleanup,
  write: (line: string) => void,
): Promise<RunVerdict> {
  const startedMs = performance.now();
  const note = (line: string) =>
    write(`${((performance.now() - startedMs) / 1_000).toFixed(0).padStart(5)} s  ${line}`);
  const random = seeded(options.seed);
  const acts = planOf(options, random.fork("plan"));
  const faults = acts.reduce((sum, act) => sum + act.faults.length, 0);
  note(`seed ${options.seed}: ${faults} faults on ${acts.length} stages`);
  const folder = await mkdtemp(join(tmpdir(), "paybell-faults-"));
  cleanup.addFolder(folder);
  // As root, PostgreSQL runs as another user, who passes through here.
  await chmod(folder, 0o711);
  const verdicts: RunVerdict[] = [];
  const play = async (act: FaultSeries, at: number) => {
    const told = (line: string) => note(`stage ${at + 1}: ${line}`);
    told(
      `${act.stage.instances} instances${act.stage.hasStandby ? " and a standby" : ""}, ${act.faults.length} faults`,
    );
    const plan = {
      act,
      folder: join(folder, `stage-${at}`),
      commandsOfRound: Math.ceil(options.commands / faults),
      perSecond: options.perSecond / options.stages,
      isQuick: options.quick,
    };
    const verdict = await runSeries(plan, random.fork(`stage ${at}`), cleanup, told);
    verdicts.push(verdict);
    for (const line of verdict.broken) told(`BROKEN ${line}`);
    told(`so far ${JSON.stringify(summaryOf(options.seed, together(verdicts)))}`);
  };
  const left = acts.entries();
  const playOn = async () => {
    for (const [at, act] of left) await play(act, at);
  };
  await Promise.all(Array.from({ length: options.stages }, playOn));
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
