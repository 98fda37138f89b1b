import { readFile } from "node:fs/promises";
import type { BenchEnvironment } from "./environment.ts";
import type { Load } from "./load.ts";
import type { Row } from "./rows.ts";
import { median, type Spread, spread } from "./statistics.ts";

/** One round of one row. Microseconds of processor time are for each notification; NaN: not known. */
export interface RoundSample {
  readonly perS: number;
  readonly ownUs: number;
  readonly postgresUs: number;
  readonly receiverUs: number;
}

export interface RowResult extends Omit<Row, "round"> {
  readonly perS: Spread;
  /** Medians. */
  readonly ownUs: number;
  readonly postgresUs: number;
  readonly receiverUs: number;
  readonly samples: readonly RoundSample[];
}

/** Every row once, in turn, as often as asked, after one round that is dropped: what slows the machine slows all. */
export async function runRounds(
  rows: readonly Row[],
  around: BenchEnvironment,
  plan: { readonly rounds: number; readonly load: Load; readonly onRound: (done: number) => void },
): Promise<readonly RowResult[]> {
  const samples = new Map<Row, RoundSample[]>(rows.map((row) => [row, []]));
  for (let round = 0; round <= plan.rounds; round += 1) {
    for (const row of rows) {
      const sample = await runOnce(row, around, plan.load);
      if (round > 0) samples.get(row)?.push(sample);
    }
    plan.onRound(round);
  }
  return rows.map((row) => resultOf(row, samples.get(row) ?? []));
}

export async function runOnce(row: Row, { receiver, postgres }: BenchEnvironment, load: Load): Promise<RoundSample> {
  const received = await receiver.ask("received", undefined);
  const postgresBefore = await treeCpuMs(postgres.pid);
  const { count, elapsedMs, cpuMs } = await row.round(load);
  if (count === 0) throw new Error(`${row.label}: none came in a round. Use a longer one (--round-ms) at this rate.`);
  const postgresAfter = await treeCpuMs(postgres.pid);
  const receivedAfter = await receiver.ask("received", undefined);
  const came = receivedAfter.count - received.count;
  if (came < count) throw new Error(`${row.label}: ${count} were counted as delivered, ${came} came.`);
  const each = (ms: number) => (ms * 1_000) / count;
  return {
    perS: (count / elapsedMs) * 1_000,
    ownUs: each(cpuMs),
    // A process of PostgreSQL that ends while they are read is missed.
    postgresUs: each(Math.max(0, postgresAfter - postgresBefore)),
    receiverUs: each(receivedAfter.cpuMs - received.cpuMs),
  };
}

function resultOf({ round: _, ...row }: Row, samples: readonly RoundSample[]): RowResult {
  const values = (key: keyof RoundSample) => samples.map((sample) => sample[key]);
  const [ownUs, postgresUs, receiverUs] = [
    median(values("ownUs")),
    median(values("postgresUs")),
    median(values("receiverUs")),
  ];
  return { ...row, perS: spread(values("perS")), ownUs, postgresUs, receiverUs, samples };
}

/** A figure of one row to another's in the same round, over the rounds. */
export function ratio(one: RowResult, other: RowResult, figure: (sample: RoundSample) => number): Spread {
  const beside = other.samples.map(figure);
  return spread(one.samples.map((sample, round) => figure(sample) / (beside[round] ?? Number.NaN)));
}

/** Linux counts in hundredths of a second, on every machine that Node runs on. */
const msPerTick = 10;

/**
 * Processor time of a process and all that descend from it, those that ended included, in milliseconds; NaN where there
 * is no /proc.
 */
async function treeCpuMs(pid: number): Promise<number> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, "utf8");
    // The name is in parentheses and may contain spaces: the numbers follow it, the state first. The last two are those
    // of children that ended.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const ticks = [11, 12, 13, 14].reduce((sum, index) => sum + Number(fields[index]), 0);
    const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
    const below = await Promise.all(children.split(" ").filter(Boolean).map(Number).map(treeCpuMs));
    // A child may have ended since it was listed.
    return below.reduce((sum, ms) => sum + (Number.isNaN(ms) ? 0 : ms), ticks * msPerTick);
  } catch {
    return Number.NaN;
  }
}
