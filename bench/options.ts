import { parseArgs } from "node:util";
import type { BacklogPlan } from "./backlog.ts";
import type { BurstPlan } from "./burst.ts";
import { namesOf, UsageError, wholeNumber } from "./command.ts";
import type { LatencyPlan } from "./latency.ts";
import type { RecoveryPlan } from "./recovery.ts";

/** The peers that we are compared with: bench/peers. */
export const peerNames = ["bullmq", "graphile-worker", "pg-boss"] as const;
/** The yardsticks: POSTs alone, and POSTs between two commits. */
export const loopNames = ["raw", "plain"] as const;
const rowNames = [...loopNames, "engine", "service", "batches", "commands", ...peerNames] as const;
/** The rows whose notifications per second are measured. */
export type RowName = (typeof rowNames)[number];

const partNames = [...rowNames, "latency", "burst", "backlog", "recovery"] as const;
export type PartName = (typeof partNames)[number];

export interface BenchOptions {
  readonly parts: ReadonlySet<PartName>;
  /** The last line of the output is one JSON object. */
  readonly quick: boolean;
  /** Beside the warm-up, which is dropped. */
  readonly rounds: number;
  readonly roundMs: number;
  /** No round calls more often, unless it calls at a rate. */
  readonly callsMax?: number | undefined;
  /** Rows and the latency are measured at this rate, and not at the most that each takes, and half of it. */
  readonly ratePerS: number | undefined;
  readonly calibrateMs: number;
  readonly latency: Omit<LatencyPlan, "ratePerS">;
  readonly burst: BurstPlan;
  readonly backlog: BacklogPlan;
  readonly recovery: RecoveryPlan;
  /** Another checkout of this repository; then nothing else is measured. */
  readonly against: string | undefined;
  readonly pairs: PairsPlan;
}

/** Two checkouts in turns. */
export interface PairsPlan {
  readonly rounds: number;
  readonly roundMs: number;
  readonly callsMax?: number | undefined;
}

export const usage = `npm run bench -- [--quick | --smoke] [--rounds n] [--round-ms n] [--rate n]
  [--only ${partNames.join(",")}]
npm run bench -- --against <checkout> [--quick] measures this checkout and another one in turns
--quick measures less, and of each part a short form; with --only, of the parts that it names
`;

const modes = {
  full: {
    rounds: 7,
    roundMs: 3_000,
    calibrateMs: 2_000,
    latency: { windows: 5, windowMs: 10_000 },
    burst: { completions: 51_500, steadyMs: 6_000 },
    backlog: { pending: 1_000_000, rounds: 7, rowsPerRound: 10_000 },
    recovery: { downMs: 60_000, completionsPerS: 400 },
    pairs: { rounds: 7, roundMs: 4_000 },
  },
  quick: {
    rounds: 5,
    roundMs: 1_300,
    calibrateMs: 700,
    latency: { windows: 5, windowMs: 3_000 },
    burst: { completions: 12_000, steadyMs: 3_000 },
    backlog: { pending: 200_000, rounds: 3, rowsPerRound: 5_000 },
    recovery: { downMs: 12_000, completionsPerS: 400 },
    pairs: { rounds: 3, roundMs: 2_000 },
  },
  // Nothing is measured, everything is run: a handful of calls is enough.
  smoke: {
    rounds: 1,
    roundMs: 150,
    callsMax: 2,
    calibrateMs: 0,
    latency: { windows: 1, windowMs: 300 },
    burst: { completions: 200, steadyMs: 150, callsMax: 1 },
    backlog: { pending: 2_000, rounds: 1, rowsPerRound: 64 },
    recovery: { downMs: 300, completionsPerS: 100 },
    pairs: { rounds: 1, roundMs: 100, callsMax: 2 },
  },
} as const;

const quickParts: readonly PartName[] = ["raw", "plain", "engine", "service", "bullmq", "latency"];

/** Has no meaning with `--against`. */
const onlyHere = ["only", "rounds", "round-ms", "rate"] as const;

/** @throws UsageError naming what cannot be read */
export function readOptions(argv: readonly string[]): BenchOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: "boolean", default: false },
      smoke: { type: "boolean", default: false },
      only: { type: "string" },
      rounds: { type: "string" },
      "round-ms": { type: "string" },
      rate: { type: "string" },
      against: { type: "string" },
    },
  });
  const other = onlyHere.find((name) => values.against !== undefined && values[name] !== undefined);
  if (other !== undefined)
    throw new UsageError(`--against takes no --${other}: every row is measured, in rounds of its own`);
  const mode = values.smoke ? modes.smoke : values.quick ? modes.quick : modes.full;
  const quick = values.quick || values.smoke;
  const usual: readonly PartName[] = quick ? quickParts : partNames;
  const parts = new Set(values.only === undefined ? usual : namesOf("--only", values.only, partNames));
  // Its rate is half of what that row takes.
  if (parts.has("latency")) parts.add("service");
  return {
    ...mode,
    parts,
    quick,
    rounds: wholeNumber("--rounds", values.rounds, mode.rounds),
    roundMs: wholeNumber("--round-ms", values["round-ms"], mode.roundMs),
    ratePerS: wholeNumber("--rate", values.rate, undefined),
    against: values.against,
  };
}
