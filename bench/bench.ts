import { type BacklogResult, measureBacklog } from "./backlog.ts";
import { type BurstResult, measureBurst } from "./burst.ts";
import { Cleanup } from "./command.ts";
import { type BenchEnvironment, startEnvironment } from "./environment.ts";
import { installPeers } from "./install-peers.ts";
import { type LatencyResult, measureLatency } from "./latency.ts";
import { type BenchOptions, loopNames, type PartName, peerNames } from "./options.ts";
import { measureRecovery, type RecoveryResult } from "./recovery.ts";
import { redisMissing } from "./redis.ts";
import { type RowResult, runRounds } from "./rounds.ts";
import { contenders, openContender, type Row } from "./rows.ts";
import { type CalledService, calledRow, engineRow, openCalledService, openService } from "./service-rows.ts";

/** A part that was not measured is undefined. */
export interface BenchResult {
  readonly node: string;
  readonly postgres: string;
  /** The rate of the rows, where one was given. */
  readonly ratePerS: number | undefined;
  readonly rows: readonly RowResult[];
  /** The parts that could not be measured, and why. */
  readonly left: readonly { readonly name: PartName; readonly why: string }[];
  readonly latency: LatencyResult | undefined;
  /** The most that the called service held in all its rows; PostgreSQL is not in it. */
  readonly serviceRssBytes: number | undefined;
  readonly burst: BurstResult | undefined;
  readonly backlog: BacklogResult | undefined;
  readonly recovery: RecoveryResult | undefined;
}

/** So that some come in every window, however busy the machine is. */
const latencyPerSMin = 50;

/** Reports progress on stderr, because a benchmark takes minutes. */
export type Note = (line: string) => void;

/** Measures the selected parts. `cleanup` stops everything that it started, whatever happens. */
export async function runBench(options: BenchOptions, cleanup: Cleanup, note: Note): Promise<BenchResult> {
  const wants = (part: PartName) => options.parts.has(part);
  if (peerNames.some(wants)) await installPeers(note);
  note("starting the receiver and PostgreSQL");
  const around = await startEnvironment(cleanup, wants("bullmq"));
  const ofRows = new Cleanup();
  cleanup.add(() => ofRows.run());
  const { rows, service, left } = await openRows(options, around, ofRows, note);
  const measured =
    rows.length === 0
      ? []
      : await runRounds(rows, around, {
          rounds: options.rounds,
          load: { durationMs: options.roundMs, ratePerS: options.ratePerS, callsMax: options.callsMax },
          onRound: (round) => note(round === 0 ? "warmed up" : `round ${round} of ${options.rounds}`),
        });
  const serviceRssBytes = service && (await service.process.ask("standing", undefined)).memory.rss;
  const servicePerS = measured.find(({ name }) => name === "service")?.perS.median ?? Number.NaN;
  const ratePerS = options.ratePerS ?? Math.max(latencyPerSMin, Math.round(servicePerS / 2));
  const plan = { ...options.latency, ratePerS };
  if (wants("latency")) note(`latency at ${plan.ratePerS} a second`);
  const latency = wants("latency") && service ? await measureLatency(service, around, plan) : undefined;
  // Idle processes would use processor time and connections of the next part.
  await ofRows.run();
  /** One after the other, each with services and databases of its own that are gone when the next one begins. */
  const alone = async <Result>(part: PartName, measure: (own: Cleanup) => Promise<Result>) => {
    if (!wants(part)) return undefined;
    note(part);
    const own = new Cleanup();
    cleanup.add(() => own.run());
    const result = await measure(own);
    await own.run();
    return result;
  };
  return {
    node: process.version,
    postgres: around.postgres.version,
    ratePerS: options.ratePerS,
    rows: measured,
    left,
    latency,
    serviceRssBytes,
    burst: await alone("burst", (own) => measureBurst(around, own, options.burst)),
    backlog: await alone("backlog", (own) => measureBacklog(around, own, options.backlog, note)),
    recovery: await alone("recovery", (own) => measureRecovery(around, own, options.recovery, note)),
  };
}

async function openRows(options: BenchOptions, around: BenchEnvironment, cleanup: Cleanup, note: Note) {
  const rows: Row[] = [];
  const left: { readonly name: PartName; readonly why: string }[] = [];
  let service: CalledService | undefined;
  const called = async () => {
    service ??= await openCalledService(around, cleanup);
    return service;
  };
  const openContenders = async (names: readonly PartName[]) => {
    for (const contender of contenders.filter(({ name }) => names.includes(name) && options.parts.has(name))) {
      if (contender.needs === "redis" && around.redis === undefined)
        left.push({ name: contender.name, why: redisMissing });
      else {
        note(`${contender.name}: looking for its best setting`);
        rows.push(await openContender(contender, around, cleanup, options.calibrateMs));
      }
    }
  };
  await openContenders(loopNames);
  if (options.parts.has("engine")) {
    rows.push(engineRow(await openService(around, cleanup, "engine")));
  }
  for (const name of ["service", "batches", "commands"] as const) {
    if (options.parts.has(name)) rows.push(calledRow(name, await called()));
  }
  await openContenders(peerNames);
  return { rows, service, left };
}
