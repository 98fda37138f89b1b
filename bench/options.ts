import { parseArgs } from "node:util";

export const rowNames = [
  "raw",
  "engine",
  "service",
  "batches",
  "commands",
  "bullmq",
  "graphile-worker",
  "pg-boss",
] as const;
/** What notifications a second are measured of. */
export type RowName = (typeof rowNames)[number];

const partNames = [...rowNames, "latency", "library", "start"] as const;
export type PartName = (typeof partNames)[number];

export interface Options {
  readonly parts: ReadonlySet<PartName>;
  /** The last line of the output is one JSON object. */
  readonly quick: boolean;
  readonly profile: boolean;
  /** One service for all its rows: a smoke test has no time for two. */
  readonly oneService: boolean;
  /** Beside the warm-up, which is dropped. */
  readonly rounds: number;
  readonly roundMs: number;
  readonly calibrateMs: number;
  readonly latencyWindows: number;
  readonly latencyWindowMs: number;
}

const usageParts = [
  "npm run bench -- [--quick | --smoke] [--rounds n] [--round-ms n] [--profile]",
  `  [--only ${partNames.join(",")}]`,
];
export const usage = `${usageParts.join("\n")}\n`;

const modes = {
  full: { rounds: 7, roundMs: 3_000, calibrateMs: 2_000, latencyWindows: 5, latencyWindowMs: 10_000 },
  quick: { rounds: 5, roundMs: 1_500, calibrateMs: 700, latencyWindows: 5, latencyWindowMs: 3_000 },
  smoke: { rounds: 1, roundMs: 150, calibrateMs: 0, latencyWindows: 1, latencyWindowMs: 300 },
} as const;

const quickParts: readonly PartName[] = ["raw", "engine", "service", "bullmq", "latency"];

/** @throws TypeError naming what cannot be read */
export function readOptions(argv: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      quick: { type: "boolean", default: false },
      smoke: { type: "boolean", default: false },
      only: { type: "string" },
      profile: { type: "boolean", default: false },
      rounds: { type: "string" },
      "round-ms": { type: "string" },
    },
  });
  const mode = values.smoke ? modes.smoke : values.quick ? modes.quick : modes.full;
  return {
    ...mode,
    parts: new Set(partsOf(values.only, values.quick || values.smoke)),
    quick: values.quick || values.smoke,
    profile: values.profile,
    oneService: values.smoke,
    rounds: wholeNumber("--rounds", values.rounds, mode.rounds),
    roundMs: wholeNumber("--round-ms", values["round-ms"], mode.roundMs),
  };
}

function partsOf(only: string | undefined, quick: boolean): readonly PartName[] {
  if (only === undefined) return quick ? quickParts : partNames;
  return only.split(",").map((name) => {
    const part = partNames.find((known) => known === name.trim());
    if (part === undefined) throw new TypeError(`--only knows ${partNames.join(", ")}; found ${name}`);
    return part;
  });
}

function wholeNumber(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined) return otherwise;
  if (!/^[1-9]\d{0,6}$/.test(text)) throw new TypeError(`${name} must be a whole number above zero; found ${text}`);
  return Number(text);
}
