import type { BenchResult } from "./bench.ts";
import type { RowName } from "./options.ts";
import { conditionLines } from "./report-conditions.ts";
import { line, memoryText, seconds, spreadText } from "./report-lines.ts";
import { type RowResult, ratio } from "./rounds.ts";

/** The target ratio of each row to raw. */
const targets: Readonly<Partial<Record<RowName, number>>> = {
  engine: 0.5,
  service: 0.25,
  batches: 0.4,
  commands: 0.15,
};

/** The whole result as a table for the terminal. */
export function tableLines(result: BenchResult): readonly string[] {
  return [
    "",
    `Node ${result.node}, PostgreSQL ${result.postgres} with fsync on, ` +
      `fdatasync p50 ${result.fdatasyncP50Ms.toFixed(2)} ms`,
    "",
    ...(result.rows.length === 0 ? [] : rowLines(result.rows, result.ratePerS)),
    ...result.left.map(({ name, why }) => `${name}: not measured. ${why}`),
    "",
    ...otherLines(result),
  ];
}

const columns = [38, 9, 21, 9, 28, 0] as const;

function rowLines(rows: readonly RowResult[], ratePerS: number | undefined): string[] {
  const head = ["", "per s", "of raw (min–max)", "to reach", "µs own/pg/rcv (of raw's)", "driven by"];
  const rawUs = rows.find(({ name }) => name === "raw")?.ownUs;
  const body = rows.map((row) => [
    row.label,
    String(Math.round(row.perS.median)),
    row.ofRaw === undefined ? "" : spreadText(row.ofRaw),
    targets[row.name] === undefined || ratePerS !== undefined ? "" : `≥ ${targets[row.name]}`,
    microsecondsText(row, rawUs),
    row.setting,
  ]);
  return [head, ...body].map((cells) => cells.map((cell, index) => cell.padEnd(columns[index] ?? 0)).join(" "));
}

/** With the quotient of the row's and PostgreSQL's processor time to raw's: 2.7 is the engine's target. */
function microsecondsText({ ownUs, postgresUs, receiverUs }: RowResult, rawUs: number | undefined): string {
  const each = [ownUs, postgresUs, receiverUs].map((us) => (us === undefined ? "?" : us.toFixed(0))).join("/");
  return rawUs === undefined ? each : `${each} (${((ownUs + (postgresUs ?? 0)) / rawUs).toFixed(1)} ×)`;
}

function otherLines(result: BenchResult): string[] {
  const { latency, saleLatency, library, start, serviceMemory } = result;
  // At a given rate, every row takes as many.
  const ofEngine = (name: RowName) =>
    result.ratePerS === undefined ? ratio(row(result, "engine"), row(result, name)) : undefined;
  const ofBullmq = ofEngine("bullmq");
  const ofPlain = ofEngine("plain");
  const raw = row(result, "raw");
  return [
    ...(ofBullmq ? [line("engine of BullMQ", spreadText(ofBullmq), "≥ 1.4")] : []),
    ...(ofPlain ? [line("engine of the plain loop", spreadText(ofPlain), "")] : []),
    ...(raw ? [line("the receiver alone could take", `${Math.round(1e6 / raw.receiverUs)} a second`, "")] : []),
    ...(latency
      ? [
          line(
            `latency at ${latency.ratePerS} a second`,
            `p50 ${latency.p50Ms.toFixed(1)} ms, p99 ${latency.p99Ms.toFixed(1)} ms`,
            "≤ 5, ≤ 40",
          ),
          line(
            "",
            `${latency.windows} windows of ${latency.windowMs / 1_000} s, p99 of each ` +
              `${latency.p99OfWindowsMs.map((ms) => ms.toFixed(1)).join(" ")}; the caller itself ` +
              `${latency.callerLateMs.toFixed(1)} ms late`,
            "",
          ),
        ]
      : []),
    ...(saleLatency
      ? [
          line(
            `POST of a Sale at ${saleLatency.ratePerS} a second`,
            `answered p50 ${saleLatency.p50Ms.toFixed(1)} ms, p99 ${saleLatency.p99Ms.toFixed(1)} ms`,
            "p50 ≤ 6",
          ),
          line(
            "",
            `p50 of each window ${saleLatency.p50OfWindowsMs.map((ms) => ms.toFixed(1)).join(" ")}; ` +
              `the caller itself ${saleLatency.callerLateMs.toFixed(1)} ms late`,
            "",
          ),
        ]
      : []),
    ...(library
      ? [
          line(
            "partner library of bare node:crypto",
            `${spreadText(library.ofBare)}, ${Math.round(library.libraryPerS)} a second`,
            "≥ 0.8",
          ),
        ]
      : []),
    ...(serviceMemory ? [line("the service after its rows held", memoryText(serviceMemory), "≤ 250 MB")] : []),
    ...conditionLines(result),
    ...(start
      ? [
          line("npm start, ready", `first ${seconds(start.firstMs)}, again ${seconds(start.againMs)}`, "≤ 3 s"),
          line("idle", start.idlePercent === undefined ? "?" : `${start.idlePercent.toFixed(2)} % of a core`, "≤ 1 %"),
        ]
      : []),
  ];
}

function row(result: BenchResult, name: RowName): RowResult | undefined {
  return result.rows.find((one) => one.name === name);
}

/** The last line of `--quick`. Parts that were not measured are null. */
export function summary(result: BenchResult): Readonly<Record<string, number | null>> {
  const perS = (name: RowName) => rounded(row(result, name)?.perS.median, 0);
  const of = (one: RowName, other: RowName) => rounded(ratio(row(result, one), row(result, other))?.median, 3);
  return {
    raw_per_s: perS("raw"),
    engine_per_s: perS("engine"),
    service_per_s: perS("service"),
    bullmq_per_s: perS("bullmq"),
    engine_raw_ratio: of("engine", "raw"),
    service_raw_ratio: of("service", "raw"),
    engine_bullmq_ratio: of("engine", "bullmq"),
    latency_p50_ms: rounded(result.latency?.p50Ms, 2),
    latency_p99_ms: rounded(result.latency?.p99Ms, 2),
  };
}

function rounded(value: number | undefined, decimals: number): number | null {
  return value === undefined || Number.isNaN(value) ? null : Number(value.toFixed(decimals));
}
