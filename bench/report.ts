import type { BacklogResult } from "./backlog.ts";
import type { BenchResult } from "./bench.ts";
import type { BurstResult } from "./burst.ts";
import type { LatencyResult } from "./latency.ts";
import type { RowName } from "./options.ts";
import type { RecoveryResult } from "./recovery.ts";
import { type RoundSample, type RowResult, ratio } from "./rounds.ts";
import type { Spread } from "./statistics.ts";

/** The target ratio of each row to raw. */
const targets: Readonly<Partial<Record<RowName, number>>> = {
  engine: 0.5,
  service: 0.25,
  batches: 0.4,
  commands: 0.15,
};

/** The whole result as a table for the terminal. */
export function tableLines(result: BenchResult): readonly string[] {
  const { latency, serviceRssBytes, burst, backlog, recovery } = result;
  return [
    "",
    `Node ${result.node}, PostgreSQL ${result.postgres} with fsync on`,
    "",
    ...(result.rows.length === 0 ? [] : rowLines(result.rows, result.ratePerS)),
    ...result.left.map(({ name, why }) => `${name}: not measured. ${why}`),
    "",
    ...ratioLines(result),
    ...(latency ? latencyLines(latency) : []),
    ...(serviceRssBytes ? [line("the service held at most", megabytes(serviceRssBytes), "≤ 300 MB")] : []),
    ...(burst ? [burstLine(burst)] : []),
    ...(backlog ? backlogLines(backlog) : []),
    ...(recovery ? recoveryLines(recovery) : []),
  ];
}

const columns = [38, 9, 21, 9, 28, 0] as const;

function rowLines(rows: readonly RowResult[], ratePerS: number | undefined): string[] {
  const head = ["", "per s", "of raw (min–max)", "to reach", "µs own/pg/rcv (of raw's)", "driven by"];
  const raw = rows.find(({ name }) => name === "raw");
  const body = rows.map((row) => [
    row.label,
    String(Math.round(row.perS.median)),
    raw === undefined ? "" : spreadText(ratio(row, raw, ({ perS }) => perS)),
    targets[row.name] === undefined || ratePerS !== undefined ? "" : `≥ ${targets[row.name]}`,
    microsecondsText(row, raw),
    row.setting,
  ]);
  return [head, ...body].map((cells) => cells.map((cell, index) => cell.padEnd(columns[index] ?? 0)).join(" "));
}

/** With the quotient of the row's and PostgreSQL's processor time to raw's: 2.7 is the engine's target. */
function microsecondsText(row: RowResult, raw: RowResult | undefined): string {
  const text = [row.ownUs, row.postgresUs, row.receiverUs].map((us) => us.toFixed(0)).join("/");
  return raw === undefined ? text : `${text} (${((row.ownUs + row.postgresUs) / raw.ownUs).toFixed(1)} ×)`;
}

function ratioLines(result: BenchResult): string[] {
  // At a given rate, every row takes as many.
  const ofEngine = (name: RowName) => (result.ratePerS === undefined ? perSRatio(result, "engine", name) : undefined);
  const ofBullmq = ofEngine("bullmq");
  const ofPlain = ofEngine("plain");
  const raw = row(result, "raw");
  return [
    ...(ofBullmq ? [line("engine of BullMQ", spreadText(ofBullmq), "≥ 1.4")] : []),
    ...(ofPlain ? [line("engine of the plain loop", spreadText(ofPlain), "≥ 0.72")] : []),
    ...(raw ? [line("the receiver alone could take", `${Math.round(1e6 / raw.receiverUs)} a second`)] : []),
  ];
}

function latencyLines({ ratePerS, p50Ms, p99Ms, windows, windowMs, ...rest }: LatencyResult): string[] {
  const p99s = rest.p99OfWindowsMs.map((ms) => ms.toFixed(1)).join(" ");
  return [
    line(`latency at ${ratePerS} a second`, `p50 ${p50Ms.toFixed(1)} ms, p99 ${p99Ms.toFixed(1)} ms`, "≤ 6, ≤ 50"),
    line(
      "",
      `${windows} windows of ${windowMs / 1_000} s, p99 of each ${p99s}; the caller itself ` +
        `${rest.callerLateMs.toFixed(1)} ms late`,
    ),
  ];
}

function burstLine({ completions, steadyPerS, acceptedPerS, meanwhilePerS, deliveredPerS }: BurstResult): string {
  return line(
    `a burst of ${completions}, each with its URL`,
    `accepted at ${acceptedPerS.toFixed(0)} a second, delivered at ${meanwhilePerS.toFixed(0)} meanwhile and ` +
      `${deliveredPerS.toFixed(0)} over all: ${(deliveredPerS / steadyPerS).toFixed(2)} of a steady load's ` +
      steadyPerS.toFixed(0),
    "≥ 0.9",
  );
}

function backlogLines(result: BacklogResult): string[] {
  const { pending, rowsPerRound, fewPerS, manyPerS, manyOfFew, memoryGrowth, statements, grown } = result;
  return [
    line(
      `drain with ${pending} pending`,
      `${manyPerS.median.toFixed(0)} a second, of ${fewPerS.median.toFixed(0)} with ${rowsPerRound}: ` +
        spreadText(manyOfFew),
      "≥ 0.8",
    ),
    line("its memory", `${megabytes(memoryGrowth)} more`, "≤ 30 MB"),
    line("statements that grow with it", grown.length === 0 ? "none" : String(grown.length), "none"),
    ...statements.map(({ query, fewMs, manyMs }) =>
      line("", `${fewMs.toFixed(2)} → ${manyMs.toFixed(2)} ms  ${query}`),
    ),
  ];
}

function recoveryLines(result: RecoveryResult): string[] {
  const seconds = (ms: number) => `${(ms / 1_000).toFixed(2)} s`;
  return [
    line(
      `recovery after ${result.downMs / 1_000} s down`,
      `first POST ${seconds(result.firstMs)}, all ${result.completions} delivered ` +
        `${seconds(result.drainedMs)} after they were back; ${result.lost} lost, ${result.duplicates} twice`,
      "0 lost",
    ),
    line("", `at one partner at most ${result.mostAtOnce} at once`, `≤ ${result.maxInFlight}`),
    line(
      "",
      `${result.mostInASecond} within a second; ` +
        `${result.mostInASecondLimited} where ${result.maxPerSecond} are allowed`,
      `≤ ${result.maxPerSecond * 2}: one second's worth may be saved up`,
    ),
    line(
      "",
      `${result.withoutProbe} partners without a probe going ahead; ` +
        `${result.failed} POSTs failed while they were down`,
      "0",
    ),
  ];
}

/** The last line of `--quick`. Parts that were not measured are null. */
export function summary(result: BenchResult): Readonly<Record<string, number | null>> {
  const perS = (name: RowName) => rounded(row(result, name)?.perS.median, 0);
  const of = (one: RowName, other: RowName) => rounded(perSRatio(result, one, other)?.median, 3);
  const processor = ({ ownUs, postgresUs }: RoundSample) => ownUs + postgresUs;
  const [engine, plain] = [row(result, "engine"), row(result, "plain")];
  return {
    raw_per_s: perS("raw"),
    engine_per_s: perS("engine"),
    service_per_s: perS("service"),
    bullmq_per_s: perS("bullmq"),
    engine_raw_ratio: of("engine", "raw"),
    service_raw_ratio: of("service", "raw"),
    engine_bullmq_ratio: of("engine", "bullmq"),
    engine_plain_ratio: of("engine", "plain"),
    cpu_plain_ratio: rounded(engine && plain && ratio(engine, plain, processor).median, 3),
    memory_mb: rounded(result.serviceRssBytes && result.serviceRssBytes / 1_048_576, 0),
    latency_p50_ms: rounded(result.latency?.p50Ms, 2),
    latency_p99_ms: rounded(result.latency?.p99Ms, 2),
  };
}

function row(result: BenchResult, name: RowName): RowResult | undefined {
  return result.rows.find((one) => one.name === name);
}

function perSRatio(result: BenchResult, one: RowName, other: RowName): Spread | undefined {
  const [measured, beside] = [row(result, one), row(result, other)];
  return measured && beside && ratio(measured, beside, ({ perS }) => perS);
}

export function rounded(value: number | undefined, decimals: number): number | null {
  return value === undefined || Number.isNaN(value) ? null : Number(value.toFixed(decimals));
}

/** One line of the report below the table: what, what was found, what is to reach. */
export function line(what: string, found: string, wanted = ""): string {
  return `${what.padEnd(39)}${found}${wanted === "" ? "" : `   (${wanted})`}`;
}

export function spreadText({ median, min, max }: Spread): string {
  return `${median.toFixed(3)} (${min.toFixed(2)}–${max.toFixed(2)})`;
}

export function megabytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MB`;
}
