import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { namesOf, UsageError, wholeNumber } from "../bench/command.ts";
import { catalogue, type InjectedFault, type Needs } from "./catalogue.ts";
import type { DeploymentPlan } from "./deployment.ts";
import type { SeededRandom } from "./random.ts";

export interface FaultOptions {
  readonly seed: number;
  /** One of each fault of the short form, as short as they can be. */
  readonly quick: boolean;
  /** On Citus, and with what can happen there. */
  readonly citus: boolean;
  /** Names of faults; undefined: all. */
  readonly only: readonly string[] | undefined;
  /** Undefined: each once. */
  readonly faults: number | undefined;
  /** At least so many, all together. */
  readonly commands: number;
  /** The rate of all concurrent stages together. */
  readonly perSecond: number;
  /** Stages that are played at the same time: much of a fault is waiting, for leases and circuit breakers. */
  readonly stages: number;
}

const names = catalogue.map(({ name }) => name);

/** What a long run processes until the next fault. */
const commandsOfFault = 2_000;
const commandsOfShortRun = 1_000;

export const usage = `npm run faults -- [--seed n] [--quick] [--citus] [--only name,…] [--faults n] [--commands n]
  [--per-second n] [--stages n]
Without --commands, ${commandsOfFault} for each fault of a long run
--quick lets each fault of the short form happen once; --only, those that it names
--citus needs PostgreSQL 15 with Citus on this machine, and starts a coordinator and two workers
The faults: ${names.join(", ")}
`;

const modes = {
  full: { faults: 500, perSecond: 900, stages: 3 },
  short: { faults: undefined, perSecond: 200, stages: 2 },
};

/** @throws UsageError naming what cannot be read */
export function readOptions(argv: readonly string[]): FaultOptions {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seed: { type: "string" },
      quick: { type: "boolean", default: false },
      citus: { type: "boolean", default: false },
      only: { type: "string" },
      faults: { type: "string" },
      commands: { type: "string" },
      "per-second": { type: "string" },
      stages: { type: "string" },
    },
  });
  const isShort = values.quick || values.only !== undefined;
  const mode = isShort ? modes.short : modes.full;
  const faults = wholeNumber("--faults", values.faults, mode.faults);
  const usualCommands = isShort || faults === undefined ? commandsOfShortRun : faults * commandsOfFault;
  return {
    seed: wholeNumber("--seed", values.seed, randomInt(2 ** 31)),
    quick: values.quick,
    citus: values.citus,
    only: values.only === undefined ? undefined : namesOf("--only", values.only, names),
    faults,
    commands: wholeNumber("--commands", values.commands, usualCommands),
    perSecond: wholeNumber("--per-second", values["per-second"], mode.perSecond),
    stages: wholeNumber("--stages", values.stages, mode.stages),
  };
}

/** A stage, and what happens on it, in order. */
export interface FaultSeries {
  readonly stage: DeploymentPlan;
  readonly faults: readonly InjectedFault[];
}

interface Kind {
  readonly meets: ReadonlySet<Needs>;
  readonly instances: number;
  readonly hasStandby: boolean;
  readonly isCitus?: boolean;
}

const kinds: readonly Kind[] = [
  { meets: new Set(["one instance", "a small disk", "nothing"]), instances: 1, hasStandby: false },
  { meets: new Set(["several instances", "a standby", "nothing"]), instances: 4, hasStandby: true },
];
const onCitus: Kind = {
  meets: new Set(["Citus", "several instances", "nothing"]),
  instances: 2,
  hasStandby: false,
  isCitus: true,
};

/** After this many faults a new stage begins, so that disk and memory of a long run stay bounded. */
const faultsOfStage = 24;
/** The disk of 1 GB that a stage may have was full after 317,000 (measured). */
const commandsOfStageMax = 240_000;
const partners = 8;
/** Each takes a second of two processors to start. */
const quickInstancesMax = 2;

/**
 * The plan of faults and stages. Every fault that was asked for comes about as often as every other one.
 *
 * @throws UsageError if a stage would get more commands than its disk holds
 */
export function planOf(options: FaultOptions, random: SeededRandom): readonly FaultSeries[] {
  const wanted = catalogue.filter(({ name, isQuick }) => options.only?.includes(name) ?? (isQuick || !options.quick));
  const usable = kindsOf(options).filter((kind) => faultsOf(kind, wanted, options).length > 0);
  const decks = usable.map((kind) => {
    const all = faultsOf(kind, wanted, options);
    return { kind, size: all.length, next: drawn(all, random) };
  });
  const total = options.faults ?? decks.reduce((sum, { size }) => sum + size, 0);
  const allSeries: FaultSeries[] = [];
  for (let left = total, turn = 0; left > 0; turn += 1) {
    const deck = decks[turn % decks.length];
    if (deck === undefined) throw new Error("There is no fault to let happen.");
    const { kind, size, next } = deck;
    const share = options.faults === undefined ? size : Math.ceil(options.faults / decks.length);
    const faults = Array.from({ length: Math.min(left, share, faultsOfStage) }, () => next.next().value);
    allSeries.push({ stage: stageOf(kind, options), faults });
    left -= faults.length;
  }
  const faultsMax = Math.max(...allSeries.map(({ faults }) => faults.length));
  const commandsMax = Math.floor((commandsOfStageMax / faultsMax) * total);
  if (options.commands > commandsMax) {
    const most = `with --faults ${total}, --commands is at most ${commandsMax}`;
    throw new UsageError(`${most}: a stage's disk holds no more; found ${options.commands}`);
  }
  return allSeries;
}

function kindsOf({ citus }: FaultOptions): readonly Kind[] {
  return citus ? [onCitus] : kinds;
}

function stageOf({ instances, hasStandby, isCitus = false }: Kind, { quick }: FaultOptions): DeploymentPlan {
  const count = quick ? Math.min(instances, quickInstancesMax) : instances;
  return { instances: count, hasStandby, isCitus, partners };
}

/** Whether a quick run plays the fault here: one that can happen anywhere belongs where there is the least to start. */
function belongsTo(kind: Kind, needs: Needs, options: FaultOptions): boolean {
  return needs === "nothing" ? kind === kindsOf(options)[0] : kind.meets.has(needs);
}

function faultsOf(kind: Kind, wanted: readonly InjectedFault[], options: FaultOptions): readonly InjectedFault[] {
  return wanted.filter(({ needs }) => (options.quick ? belongsTo(kind, needs, options) : kind.meets.has(needs)));
}

/** Draws without replacement, and shuffles again when all have been drawn. */
function* drawn(all: readonly InjectedFault[], random: SeededRandom): Generator<InjectedFault, never> {
  for (;;) yield* random.shuffled(all);
}
