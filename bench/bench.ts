import { copyFile, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type ConditionResults, measureConditions } from "./conditions.ts";
import { fdatasyncP50Ms } from "./disk.ts";
import { expectedMs, inWords } from "./duration.ts";
import { type BenchEnvironment, Cleanup, startEnvironment } from "./environment.ts";
import { installPeers } from "./install-peers.ts";
import { type LatencyResult, measureLatency } from "./latency.ts";
import { type LibraryResult, measureLibrary } from "./library.ts";
import type { MemorySample } from "./memory-watch.ts";
import { type BenchOptions, loopNames, type PartName, peerNames } from "./options.ts";
import { selfTimes } from "./profile.ts";
import { redisMissing } from "./redis.ts";
import { type RowResult, runRounds } from "./rounds.ts";
import { contenders, openContender, type Row } from "./rows.ts";
import { measureSaleLatency, type SaleLatencyResult } from "./sale-latency.ts";
import {
  type BenchService,
  type CalledService,
  calledRow,
  engineRow,
  openCalledService,
  openService,
} from "./service-rows.ts";
import { measureStart, type StartResult } from "./start-time.ts";
import { everyStatement, profileStatements, statementSettings } from "./statements.ts";

export interface BenchResult extends ConditionResults {
  readonly node: string;
  readonly postgres: string;
  readonly fdatasyncP50Ms: number;
  /** The rate of the rows, where one was given. */
  readonly ratePerS: number | undefined;
  readonly rows: readonly RowResult[];
  /** The parts that were not measured, and why. */
  readonly left: readonly { readonly name: PartName; readonly why: string }[];
  readonly latency: LatencyResult | undefined;
  readonly saleLatency: SaleLatencyResult | undefined;
  readonly library: LibraryResult | undefined;
  readonly start: StartResult | undefined;
  /** The most that the called service held in all its rows; PostgreSQL is not in it. */
  readonly serviceMemory: MemorySample | undefined;
}

/** Reports progress on stderr, because a benchmark takes minutes. */
export type Note = (line: string) => void;

/** Measures the selected parts. `cleanup` stops everything that it started, whatever happens. */
export async function runBench(options: BenchOptions, cleanup: Cleanup, note: Note): Promise<BenchResult> {
  const wants = (part: PartName) => options.parts.has(part);
  note(`this takes some ${inWords(expectedMs(options))}`);
  if (peerNames.some(wants)) await installPeers(note);
  note("starting the receiver and PostgreSQL");
  const around = await startEnvironment(cleanup, {
    redis: wants("bullmq"),
    postgresSettings: options.profile ? everyStatement : statementSettings,
  });
  const fdatasync = await fdatasyncP50Ms(around.folder);
  const ofRows = new Cleanup();
  cleanup.add(() => ofRows.run());
  const { rows, service, engine, left } = await openRows(options, around, ofRows, note);
  const measured =
    rows.length === 0
      ? []
      : await runRounds(rows, around, {
          rounds: options.rounds,
          load: { durationMs: options.roundMs, ratePerS: options.ratePerS },
          onRound: (round) => note(round === 0 ? "warmed up" : `round ${round} of ${options.rounds}`),
        });
  if (options.profile && engine) await profileEngine(engine, around, note);
  const serviceMemory = service && (await service.process.ask("standing", undefined)).memory;
  const latency = wants("latency") && service ? await latencyOf(service, around, measured, options, note) : undefined;
  const saleLatency =
    wants("sale-latency") && service
      ? await saleLatencyOf(service, around, cleanup, measured, options, note)
      : undefined;
  // Idle processes would use processor time and connections of the next part.
  await ofRows.run();
  const serviceRow = measured.find(({ name }) => name === "service");
  const conditions = await measureConditions(options, around, cleanup, serviceRow?.perS.median, note);
  const library = wants("library") ? await measureLibrary(cleanup, options) : undefined;
  if (wants("start")) note("npm start, twice");
  const start = wants("start") ? await measureStart(around.folder, cleanup) : undefined;
  return {
    node: process.version,
    postgres: around.postgres.version,
    fdatasyncP50Ms: fdatasync,
    ratePerS: options.ratePerS,
    rows: measured,
    left,
    latency,
    saleLatency,
    library,
    start,
    serviceMemory,
    ...conditions,
  };
}

async function openRows(options: BenchOptions, around: BenchEnvironment, cleanup: Cleanup, note: Note) {
  const rows: Row[] = [];
  const left: { readonly name: PartName; readonly why: string }[] = [];
  let service: CalledService | undefined;
  let engine: BenchService | undefined;
  const called = async () => {
    service ??= await openCalledService(around, cleanup);
    return service;
  };
  const openContenders = async (names: readonly PartName[]) => {
    for (const contender of contenders.filter(({ name }) => names.includes(name) && options.parts.has(name))) {
      if (contender.needsRedis && around.redis === undefined) left.push({ name: contender.name, why: redisMissing });
      else {
        note(`${contender.name}: looking for its best setting`);
        rows.push(await openContender(contender, around, cleanup, options.calibrateMs));
      }
    }
  };
  await openContenders(loopNames);
  if (options.parts.has("engine")) {
    const profile = options.profile ? ["--cpu-prof", `--cpu-prof-dir=${profileFolder(around)}`] : [];
    const open = () => openService(around, cleanup, "engine", { execArgv: profile });
    engine = options.oneService ? await called() : await open();
    rows.push(engineRow(engine));
  }
  for (const name of ["service", "batches", "commands"] as const) {
    if (options.parts.has(name)) rows.push(calledRow(name, await called()));
  }
  if (options.parts.has("latency") || options.parts.has("sale-latency")) await called();
  await openContenders(peerNames);
  return { rows, service, engine, left };
}

function profileFolder({ folder }: BenchEnvironment): string {
  return join(folder, "profile");
}

/** Ends the engine: Node writes its profile then. */
async function profileEngine({ process }: BenchService, around: BenchEnvironment, note: Note): Promise<void> {
  note(await profileStatements(around.postgres.superuserConnectionString, ["engine", "service"]));
  await process.ask("stop", undefined);
  await process.stop();
  for (const name of await readdir(profileFolder(around))) {
    const kept = join(import.meta.dirname, "results", name);
    await copyFile(join(profileFolder(around), name), kept);
    note(`engine, self time (${kept})\n${await selfTimes(kept)}`);
  }
}

async function latencyOf(
  service: CalledService,
  around: BenchEnvironment,
  measured: readonly RowResult[],
  options: BenchOptions,
  note: Note,
): Promise<LatencyResult> {
  // Measured alone, it is warmed up by that.
  const row = measured.find(({ name }) => name === "service") ?? (await rowAlone("service", service, around, options));
  const ratePerS = options.ratePerS ?? Math.round(row.perS.median / 2);
  note(`latency at ${ratePerS} a second`);
  return await measureLatency(service, around, {
    ratePerS,
    windows: options.latencyWindows,
    windowMs: options.latencyWindowMs,
  });
}

async function saleLatencyOf(
  service: CalledService,
  around: BenchEnvironment,
  cleanup: Cleanup,
  measured: readonly RowResult[],
  options: BenchOptions,
  note: Note,
): Promise<SaleLatencyResult> {
  const row =
    measured.find(({ name }) => name === "commands") ?? (await rowAlone("commands", service, around, options));
  const ratePerS = Math.round(row.perS.median / 4);
  note(`latency of a Sale at ${ratePerS} a second`);
  const { latencyWindows: windows, latencyWindowMs: windowMs } = options;
  return await measureSaleLatency(service, cleanup, { ratePerS, windows, windowMs });
}

async function rowAlone(
  name: "service" | "commands",
  service: CalledService,
  around: BenchEnvironment,
  options: BenchOptions,
): Promise<RowResult> {
  const rounds = { rounds: options.rounds, load: { durationMs: options.roundMs }, onRound: () => undefined };
  const [row] = await runRounds([calledRow(name, service)], around, rounds);
  if (row === undefined) throw new Error(`The row ${name} gave no result.`);
  return row;
}
