import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { Note } from "./bench.ts";
import { Cleanup, UsageError } from "./command.ts";
import { type BenchEnvironment, startEnvironment } from "./environment.ts";
import { callAndReceive, type LatencyResult, measureLatency } from "./latency.ts";
import type { Load } from "./load.ts";
import type { PairsPlan, RowName } from "./options.ts";
import { line, megabytes, rounded, spreadText } from "./report.ts";
import { type RoundSample, runOnce } from "./rounds.ts";
import type { Row } from "./rows.ts";
import { type CalledName, type CalledService, calledRow, engineRow, openCalledService } from "./service-rows.ts";
import { median, percentile, type Spread, spread } from "./statistics.ts";

/** The times of one side, in milliseconds: from the request or from its answer to the callback received. */
type Times = Pick<LatencyResult, "p50Ms" | "p99Ms">;

type Pair<Value> = readonly [own: Value, other: Value];

/** This checkout beside another one: each figure is of both, taken in turns. */
export interface PairsResult {
  readonly other: string;
  readonly rows: readonly PairedRow[];
  readonly latency: readonly {
    readonly label: string;
    /** The rate of the calls; undefined: as many as the callers can. */
    readonly ratePerS?: number;
    readonly times: Pair<Times>;
  }[];
  /** Resident, when it held the most; PostgreSQL is not in it. */
  readonly rssBytes: Pair<number>;
}

interface PairedRow {
  readonly name: RowName;
  readonly label: string;
  readonly ratePerS?: number;
  /** Own ÷ other: the rate, and the processor time of service and PostgreSQL for each notification. */
  readonly rate: Spread;
  readonly processor: Spread;
  readonly perS: Pair<number>;
}

const saturatingCallers = 128;
/** Sales that two cores take with a host over TCP and everything else beside. */
const salesPerS = 300;
const ratesPerS = [200, 1_000];
const settleMs = 300;

/** @param folder another checkout of this repository, with its dependencies installed */
export async function measurePairs(
  folder: string,
  plan: PairsPlan,
  cleanup: Cleanup,
  note: Note,
): Promise<PairsResult> {
  const entry = join(resolve(folder), "bench/processes/service.ts");
  if (!existsSync(entry)) throw new UsageError(`--against names a checkout of this repository; ${entry} is not there`);
  const around = await startEnvironment(cleanup);
  const services = new Cleanup();
  cleanup.add(() => services.run());
  const own = await openCalledService(around, services, "own");
  const other = await openCalledService(around, services, "other", { entry: pathToFileURL(entry) });
  const sides = [own, other] as const;
  const rows: PairedRow[] = [];
  const loads: readonly { readonly name: "engine" | CalledName; readonly ratePerS?: number }[] = [
    ...(["engine", "service", "batches", "commands"] as const).map((name) => ({ name })),
    ...ratesPerS.map((ratePerS) => ({ name: "service", ratePerS }) as const),
    { name: "commands", ratePerS: salesPerS },
  ];
  for (const { name, ratePerS } of loads) {
    note(`${name}${ratePerS === undefined ? "" : ` at ${ratePerS} a second`}, in turns`);
    const [one, another] = sides.map((side) => (name === "engine" ? engineRow(side) : calledRow(name, side)));
    const load = { durationMs: plan.roundMs, callsMax: plan.callsMax, ratePerS };
    const row = await pairOf(around, plan, [one as Row, another as Row], load);
    rows.push(ratePerS === undefined ? row : { ...row, label: `${name} at ${ratePerS} a second`, ratePerS });
  }
  const latency: PairsResult["latency"][number][] = [];
  for (const ratePerS of ratesPerS) {
    note(`latency at ${ratePerS} a second, in turns`);
    const window = { ratePerS, windows: 1, windowMs: plan.roundMs };
    const times = await timesOf(plan, sides, (side) => measureLatency(side, around, window));
    latency.push({ label: `request → callback at ${ratePerS} a second`, ratePerS, times });
  }
  note("accepted → callback, saturated, in turns");
  const times = await timesOf(plan, sides, (side) => saturatedLag(side, around, plan));
  latency.push({ label: `accepted → callback, ${saturatingCallers} callers`, times });
  const memory = await Promise.all(sides.map((side) => side.process.ask("standing", undefined)));
  const [ownRss = Number.NaN, otherRss = Number.NaN] = memory.map((figures) => figures.memory.rss);
  return { other: folder, rows, latency, rssBytes: [ownRss, otherRss] };
}

/** The first pair is dropped. */
async function pairOf(around: BenchEnvironment, plan: PairsPlan, rows: Pair<Row>, load: Load): Promise<PairedRow> {
  const samples = await inTurns(plan.rounds + 1, rows, (row) => runOnce(row, around, load));
  const [own, other] = samples.map((all) => all.slice(1)) as [RoundSample[], RoundSample[]];
  const quotients = (of: (sample: RoundSample) => number) =>
    spread(own.map((sample, round) => of(sample) / of(other[round] as RoundSample)));
  return {
    name: rows[0].name,
    label: rows[0].label,
    rate: quotients(({ perS }) => perS),
    processor: quotients(({ ownUs, postgresUs }) => ownUs + postgresUs),
    perS: [median(own.map(({ perS }) => perS)), median(other.map(({ perS }) => perS))],
  };
}

async function timesOf(
  plan: PairsPlan,
  sides: Pair<CalledService>,
  measure: (side: CalledService) => Promise<Times>,
): Promise<Pair<Times>> {
  const [own, other] = await inTurns(plan.rounds, sides, measure);
  const medians = (times: readonly Times[]): Times => ({
    p50Ms: median(times.map(({ p50Ms }) => p50Ms)),
    p99Ms: median(times.map(({ p99Ms }) => p99Ms)),
  });
  return [medians(own), medians(other)];
}

/** The first of a pair alternates, so that neither always follows the other. */
async function inTurns<Side, Value>(
  rounds: number,
  sides: Pair<Side>,
  measure: (side: Side) => Promise<Value>,
): Promise<Pair<Value[]>> {
  const measured: Pair<Value[]> = [[], []];
  for (let round = 0; round < rounds; round += 1) {
    for (const at of round % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
      measured[at].push(await measure(sides[at]));
      await new Promise((done) => setTimeout(done, settleMs));
    }
  }
  return measured;
}

/** As many callers as saturate it; each calls again when it has its answer. */
async function saturatedLag(service: CalledService, around: BenchEnvironment, plan: PairsPlan): Promise<Times> {
  const load = { callers: saturatingCallers, durationMs: plan.roundMs, callsMax: plan.callsMax };
  // No service accepts more than 20 in a millisecond.
  const { answeredMs, arrivals } = await callAndReceive(service, around, load, Math.ceil(plan.roundMs * 20));
  const lags = answeredMs.map((atMs, index) => Math.max(0, (arrivals[index] ?? Number.NaN) - atMs));
  return { p50Ms: percentile(lags, 50), p99Ms: percentile(lags, 99) };
}

export function pairLines({ other, rows, latency, rssBytes }: PairsResult): readonly string[] {
  const ms = ([own, others]: Pair<Times>, of: (times: Times) => number) =>
    `${of(own).toFixed(1)} | ${of(others).toFixed(1)} ms`;
  return [
    `This checkout ÷ ${other}, or this | the other; medians of pairs (least–most)`,
    ...rows.flatMap(({ label, rate, processor, perS }) => [
      line(label, `rate ${spreadText(rate)}; ${perS.map(Math.round).join(" | ")} a second`),
      line("", `processor time ${spreadText(processor)}`),
    ]),
    ...latency.map(({ label, times }) =>
      line(label, `p50 ${ms(times, ({ p50Ms }) => p50Ms)}, p99 ${ms(times, ({ p99Ms }) => p99Ms)}`),
    ),
    line("memory, at most", rssBytes.map(megabytes).join(" | ")),
  ];
}

/** The last line: each figure of this checkout ÷ that of the other one. */
export function pairSummary({ rows, latency, rssBytes }: PairsResult): Readonly<Record<string, number | null>> {
  const row = (name: RowName, ratePerS?: number) => rows.find((one) => one.name === name && one.ratePerS === ratePerS);
  const [own, other] = latency.find(({ ratePerS }) => ratePerS === 1_000)?.times ?? [];
  return {
    singles: rounded(row("service")?.rate.median, 3),
    batches: rounded(row("batches")?.rate.median, 3),
    cpu: rounded(row("service")?.processor.median, 3),
    cpu_200: rounded(row("service", 200)?.processor.median, 3),
    memory: rounded(rssBytes[0] / rssBytes[1], 3),
    p99_1000: rounded((own?.p99Ms ?? Number.NaN) / (other?.p99Ms ?? Number.NaN), 3),
  };
}
