import { parseArgs } from "node:util";

export interface SimulationOptions {
  readonly seed: number;
  readonly steps: number;
  /** Only lines of the trace that match. */
  readonly about: RegExp | undefined;
  /** Lines of the trace that a violation shows. */
  readonly lines: number;
}

export const usage = `npm run simulate -- [--seed S] [--steps N] [--about PATTERN] [--lines N]

  --seed    a whole number: the same one gives the same run (default: by the clock)
  --steps   how many events to simulate (default: 1000000)
  --about   after a violation, shows only the lines of the trace that match
  --lines   after a violation, shows so many lines of the trace (default: 60)
`;

/** @throws TypeError for options that are not understood */
export function readOptions(args: readonly string[], nowMs: number): SimulationOptions {
  const options = {
    seed: { type: "string", default: String(nowMs % 1_000_000_000) },
    steps: { type: "string", default: "1000000" },
    lines: { type: "string", default: "60" },
    about: { type: "string" },
  } as const;
  const { values } = parseArgs({ args: [...args], options });
  return {
    seed: wholeNumber("seed", values.seed),
    steps: wholeNumber("steps", values.steps),
    lines: wholeNumber("lines", values.lines),
    about: values.about === undefined ? undefined : new RegExp(values.about),
  };
}

function wholeNumber(name: string, text: string): number {
  const number = Number(text);
  if (/^[0-9]{1,15}$/.test(text)) return number;
  throw new TypeError(`--${name} must be a whole number, not "${text}".`);
}
