import { randomInt } from "node:crypto";
import { parseArgs } from "node:util";
import { catalogue } from "./catalogue/catalogue.ts";

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
  /** Further arguments of `paybell serve`, for each instance in turn. */
  readonly serveArguments: readonly (readonly string[])[];
}

const names = catalogue.map(({ name }) => name);

export const usage = `npm run faults -- [--seed n] [--quick] [--citus] [--only name,…] [--faults n] [--commands n]
  [--per-second n] [--stages n] [--serve="arguments of an instance"]…
--quick lets each fault of the short form happen once; --only, those that it names
--citus needs PostgreSQL 15 with Citus on this machine, and starts a coordinator and two workers
The faults: ${names.join(", ")}
`;

const modes = {
  full: { faults: 500, commands: 1_000_000, perSecond: 900, stages: 3 },
  short: { faults: undefined, commands: 1_000, perSecond: 200, stages: 2 },
};

/** @throws TypeError naming what cannot be read */
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
      serve: { type: "string", multiple: true, default: [] },
    },
  });
  const mode = values.quick || values.only !== undefined ? modes.short : modes.full;
  return {
    seed: wholeNumber("--seed", values.seed) ?? randomInt(2 ** 31),
    quick: values.quick,
    citus: values.citus,
    only: values.only === undefined ? undefined : namesOf(values.only),
    faults: wholeNumber("--faults", values.faults) ?? mode.faults,
    commands: wholeNumber("--commands", values.commands) ?? mode.commands,
    perSecond: wholeNumber("--per-second", values["per-second"]) ?? mode.perSecond,
    stages: wholeNumber("--stages", values.stages) ?? mode.stages,
    serveArguments: values.serve.map((line) => line.split(/\s+/).filter((word) => word !== "")),
  };
}

function namesOf(only: string): readonly string[] {
  return only.split(",").map((name) => {
    if (names.includes(name.trim())) return name.trim();
    throw new TypeError(`--only knows ${names.join(", ")}; found ${name}`);
  });
}

function wholeNumber(name: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  if (!/^[1-9]\d{0,9}$/.test(text)) throw new TypeError(`${name} must be a whole number above zero; found ${text}`);
  return Number(text);
}
