import { Cleanup } from "../bench/command.ts";
import type { InjectedFault } from "./catalogue.ts";
import { Deployment } from "./deployment.ts";
import { merchantTransIdOf } from "./journal.ts";
import { paceOf, startLoad } from "./load.ts";
import type { FaultSeries } from "./plan.ts";
import type { SeededRandom } from "./random.ts";
import { drained, eventually, isNothingPending, type Round, runRound } from "./round.ts";
import { judge, type RunVerdict, slowdownText } from "./verdict.ts";

export interface FaultSeriesPlan {
  readonly series: FaultSeries;
  readonly folder: string;
  /** At least so many for each fault. */
  readonly commandsOfRound: number;
  readonly perSecond: number;
  readonly isQuick: boolean;
}

const deliveredWithinMs = 180_000;
const nothingPendingWithinMs = 120_000;
/** The warnings and errors of an instance's log. */
const tellingMax = 10;
const informationLevel = /"level":("info"|30)/;
/** A batch leaves so often, whatever the rate. */
const batchesPerSecond = 24;

/** Builds a stage, lets its faults happen under load, and judges what came of it. */
export async function runSeries(
  plan: FaultSeriesPlan,
  random: SeededRandom,
  cleanup: Cleanup,
  note: (line: string) => void,
): Promise<RunVerdict> {
  const own = new Cleanup();
  cleanup.add(() => own.run());
  const stage = await Deployment.build(plan.series.stage, plan.folder, random, own);
  const { caller, journal, books, operatorToken } = stage;
  const batchSize = Math.max(2, Math.round(plan.perSecond / batchesPerSecond));
  const parts = { caller, journal, books, operatorToken, batchSize, pace: paceOf(plan.perSecond) };
  const load = startLoad(stage.partners, parts, random.fork("load"));
  const deaths: string[] = [];
  const rounds: Round[] = [];
  for (const fault of plan.series.faults) {
    if (!isPossible(stage, fault, note)) continue;
    const until = journal.size + plan.commandsOfRound;
    const from = rounds.at(-1)?.to ?? 0;
    const round = await runRound(stage, { fault, until, isQuick: plan.isQuick }, from, random);
    rounds.push(round);
    note(lineOf(round, stage));
    if (journal.owed(round.from, round.to) > 0) await explain(stage, note);
    if (journal.repeats(round.from, round.to) > round.duplicatesMax) await explainRepeats(stage, round, note);
    if (round.slowdown !== undefined) note(`  ${slowdownText(round.fault, round.slowdown)}`);
    for (const line of caller.takeTroubles()) note(`  answered ${line}`);
    deaths.push(...(await revive(stage, fault)));
    if (round.recoveryMs === undefined) break;
  }
  const unanswered = !(await load.end());
  await drained(stage, deliveredWithinMs, journal.size);
  await eventually(nothingPendingWithinMs, () => isNothingPending(stage));
  for (const [refusal, count] of load.refusals) note(`  refused: ${refusal} × ${count}`);
  note(`  answers: ${[...caller.answers].map(([answer, count]) => `${answer} × ${count}`).join(", ")}`);
  const { unauthentic } = stage.server;
  // In a short run other work on the machine would be taken for the neighbour.
  const judged = plan.isQuick ? rounds.map((round) => ({ ...round, slowdown: undefined })) : rounds;
  const verdict = judge(journal, books, judged, { unauthentic, unanswered, deaths });
  await explain(stage, note);
  if (verdict.broken.length > 0) noteLogs(stage, note);
  await own.run();
  return verdict;
}

function isPossible(stage: Deployment, fault: InjectedFault, note: (line: string) => void): boolean {
  if (fault.needs !== "a small disk" || stage.disk !== undefined) return true;
  note(`${fault.name} is skipped: a disk that can be filled is a tmpfs, which root alone may mount here`);
  return false;
}

function lineOf(
  { fault, recoveryMs, drainedMs, from, to, duplicatesMax, isPlanned }: Round,
  { journal }: Deployment,
): string {
  const recovered = recoveryMs === undefined ? "never" : seconds(recoveryMs);
  const owed = journal.owed(from, to);
  const drained = owed === 0 ? `all delivered after ${seconds(drainedMs)}` : `${owed} owed after ${seconds(drainedMs)}`;
  const duplicates = `${journal.repeats(from, to)} of ${duplicatesMax} duplicates`;
  const cards = isPlanned ? `, ${journal.declined(from, to).length} declined by us` : "";
  return `${fault}: recovered after ${recovered}, ${drained}, ${duplicates}${cards}, ${journal.size} commands so far`;
}

function seconds(ms: number): string {
  return `${(ms / 1_000).toFixed(1)} s`;
}

/** An instance that ended by itself is restarted and reported. */
async function revive(stage: Deployment, fault: InjectedFault): Promise<readonly string[]> {
  const dead = stage.instances.filter(({ isRunning }) => !isRunning);
  const deaths = dead.map(
    ({ lines }) => `after ${fault.name} an instance had ended: ${lines.at(-1) ?? "without a word"}`,
  );
  for (const instance of dead) await instance.start();
  return deaths;
}

/** Prints the operator API's view of missing notifications. */
async function explain({ journal, caller, operatorToken }: Deployment, note: (line: string) => void): Promise<void> {
  for (const no of journal.lost().slice(0, 5)) {
    const path = `/operator/v1/notifications?q=${merchantTransIdOf(no)}`;
    const { body } = await caller.call("GET", path, operatorToken);
    note(`  ${merchantTransIdOf(no)}: ${JSON.stringify(body)}`);
  }
}

/** Prints the attempts and events of notifications that came more than once, and the logs of that time. */
async function explainRepeats(stage: Deployment, { from, to }: Round, note: (line: string) => void): Promise<void> {
  for (const id of stage.journal.repeated(from, to).slice(0, 5)) {
    const { body } = await stage.caller.call("GET", `/operator/v1/notifications/${id}`, stage.operatorToken);
    note(`  came again: ${JSON.stringify(body)}`);
  }
  noteLogs(stage, note);
}

function noteLogs(stage: Deployment, note: (line: string) => void): void {
  for (const [at, { lines }] of stage.instances.entries()) {
    const telling = lines.filter((line) => !informationLevel.test(line)).slice(-tellingMax);
    note(`  instance ${at}:\n${telling.join("\n")}`);
  }
}
