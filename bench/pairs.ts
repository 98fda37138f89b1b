import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Note } from "./bench.ts";
import { type BenchEnvironment, Cleanup, startEnvironment } from "./environment.ts";
import { measureLatency } from "./latency.ts";
import type { PairsPlan } from "./options.ts";
import { line, megabytes, spreadText } from "./report-lines.ts";
import { type RoundSample, runOnce } from "./rounds.ts";
import { type CalledService, calledRow, engineRow, openCalledService } from "./service-rows.ts";
import { statementSettings } from "./statements.ts";
import { median, percentile, type Spread, spread } from "./statistics.ts";

/** The times of one side, in milliseconds: from the request or from its answer to the callback received. */
interface Times {
  readonly p50Ms: number;
  readonly p99Ms: number;
}

type Pair<Value> = readonly [own: Value, other: Value];

/** This checkout beside another one: each figure is of both, taken in turns. */
export interface PairsResult {
  readonly other: string;
  readonly rows: readonly {
    readonly label: string;
    /** Own ÷ other: the rate, and the processor time of service and PostgreSQL for each notification. */
    readonly rate: Spread;
    readonly processor: Spread;
    readonly perS: Pair<number>;
  }[];
  readonly latency: readonly { readonly label: string; readonly times: Pair<Times> }[];
  /** Resident, when it held the most; PostgreSQL is not in it. */
  readonly rssBytes: Pair<number>;
}

const saturatingCallers = 128;
const settleMs = 300;

/** @param folder another checkout of this repository, with its dependencies installed */
export async function measurePairs(
  folder: string,
  plan: PairsPlan,
  cleanup: Cleanup,
  note: Note,
): Promise<PairsResult> {
  const entry = join(resolve(folder), "bench/processes/service.ts");
  if (!existsSync(entry)) throw new TypeError(`--against names a checkout of this repository; ${entry} is not there`);
  const around = await startEnvironment(cleanup, { redis: false, postgresSettings: statementSettings });
  const services = new Cleanup();
  cleanup.add(() => services.run());
  const own = await openCalledService(around, services, "own");
  const other = await openCalledService(around, services, "other", { entry: pathToFileURL(entry) });
  const sides = [own, other] as const;
  const rows: PairsResult["rows"][number][] = [];
  for (const name of ["engine", "service", "batches"] as const) {
    note(`${name}, in turns`);
    const ofSides = sides.map((side) => (name === "engine" ? engineRow(side) : calledRow(name, side)));
    rows.push(await pairOf(around, plan, ofSides, { durationMs: plan.roundMs }));
  }
  for (const ratePerS of plan.ratesPerS) {
    note(`${ratePerS} a second, in turns`);
    const ofSides = sides.map((side) => calledRow("service", side));
    const load = { durationMs: plan.roundMs, ratePerS };
    rows.push({ ...(await pairOf(around, plan, ofSides, load)), label: `service at ${ratePerS} a second` });
  }
  const latency: PairsResult["latency"][number][] = [];
  for (const ratePerS of plan.ratesPerS) {
    note(`latency at ${ratePerS} a second, in turns`);
    const window = { ratePerS, windows: 1, windowMs: plan.roundMs };
    const times = await inTurns(plan.rounds, sides, (side) => measureLatency(side, around, window));
    latency.push({ label: `request → callback at ${ratePerS} a second`, times });
  }
  note("accepted → callback, saturated, in turns");
  const times = await inTurns(plan.rounds, sides, (side) => saturatedLag(side, around, plan.roundMs));
  latency.push({ label: `accepted → callback, ${saturatingCallers} callers`, times });
  const memory = await Promise.all(sides.map((side) => side.process.ask("standing", undefined)));
  const [ownRss = Number.NaN, otherRss = Number.NaN] = memory.map((figures) => figures.memory.rss);
  return { other: folder, rows, latency, rssBytes: [ownRss, otherRss] };
}

/** Rounds in turns, the first pair dropped; who begins changes, so that neither always follows the other. */
async function pairOf(
  around: BenchEnvironment,
  plan: PairsPlan,
  rows: readonly ReturnType<typeof engineRow>[],
  load: { readonly durationMs: number; readonly ratePerS?: number },
): Promise<PairsResult["rows"][number]> {
  const samples: RoundSample[][] = rows.map(() => []);
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const at of round % 2 === 0 ? [0, 1] : [1, 0]) {
      const row = rows[at];
      if (row === undefined) continue;
      const sample = await runOnce(row, around, load);
      if (round > 0) samples[at]?.push(sample);
      await new Promise((done) => setTimeout(done, settleMs));
    }
  }
  const [own = [], other = []] = samples;
  const quotients = (of: (sample: RoundSample) => number) =>
    spread(own.map((sample, round) => of(sample) / of(other[round] as RoundSample)));
  return {
    label: rows[0]?.label ?? "",
    rate: quotients(({ perS }) => perS),
    processor: quotients(({ ownUs, postgresUs = 0 }) => ownUs + postgresUs),
    perS: [median(own.map(({ perS }) => perS)), median(other.map(({ perS }) => perS))],
  };
}

async function inTurns(
  rounds: number,
  sides: Pair<CalledService>,
  measure: (side: CalledService) => Promise<Times>,
): Promise<Pair<Times>> {
  const measured: [Times[], Times[]] = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      measured[at].push(await measure(sides[at]));
      await new Promise((done) => setTimeout(done, settleMs));
    }
  }
  const medians = (times: readonly Times[]): Times => ({
    p50Ms: median(times.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(times.map(({ p99Ms }) => p99Ms)),
  });
  return [medians(measured[0]), medians(measured[1])];
}

/** As many callers as saturate it; each calls again when it has its answer. */
async function saturatedLag(
  { caller, process }: CalledService,
  { receiver, target }: BenchEnvironment,
  durationMs: number,
): Promise<Times> {
  const before = await process.ask("standing", undefined);
  // More than any service accepts.
  await receiver.ask("noteArrivals", Math.ceil(durationMs * 20));
  const loop = { callers: saturatingCallers, durationMs, callbackBase: target.url };
  const acceptedMs = await caller.ask("closedLoop", loop);
  await process.ask("drained", { attempts: before.attempts + acceptedMs.length });
  const arrivals = await receiver.ask("arrivals", undefined);
  const lags = acceptedMs.map((atMs, index) => Math.max(0, (arrivals[index] ?? Number.NaN) - atMs));
  return { p50Ms: percentile(lags, 50), p99Ms: percentile(lags, 99) };
}

export function pairLines({ other, rows, latency, rssBytes }: PairsResult): readonly string[] {
  const ms = ([own, others]: Pair<Times>, of: (times: Times) => number) =>
    `${of(own).toFixed(1)} | ${of(others).toFixed(1)} ms`;
  return [
    `This checkout ÷ ${other}, or this | the other; medians of pairs (least–most)`,
    ...rows.flatMap(({ label, rate, processor, perS }) => [
      line(label, `rate ${spreadText(rate)}; ${perS.map(Math.round).join(" | ")} a second`, ""),
      line("", `processor time ${spreadText(processor)}`, ""),
    ]),
    ...latency.map(({ label, times }) =>
      line(label, `p50 ${ms(times, ({ p50Ms }) => p50Ms)}, p99 ${ms(times, ({ p99Ms }) => p99Ms)}`, ""),
    ),
    line("memory, at most", rssBytes.map(megabytes).join(" | "), ""),
  ];
}
