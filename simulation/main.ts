import { parseArgs } from "node:util";
import { Simulation, type SimulationResult } from "./simulation.ts";

function describe(
  { violation, tail }: SimulationResult,
  seed: number,
  lines: number,
  about: RegExp | undefined,
): string {
  if (violation === undefined) return "";
  const { invariant, step, atMs, text } = violation;
  const replay = `npm run simulate -- --seed ${seed} --steps ${step}`;
  const what = `Invariant ${invariant} is broken at step ${step}, ${(atMs / 1_000).toFixed(3)} s: ${text}`;
  return `${tail(lines, about).join("\n")}\n\n${what}\nThe same again: ${replay}\n`;
}

async function main(): Promise<number> {
  try {
    const { seed, steps, about, lines } = readOptions(process.argv.slice(2), Date.now());
    const startedMs = performance.now();
    const result = await new Simulation({ seed, steps }).run();
    const tookMs = performance.now() - startedMs;
    process.stdout.write(describe(result, seed, lines, about));
    const perMinute = Math.round((result.steps / tookMs) * 60_000);
    const violations = result.violation === undefined ? 0 : 1;
    const line = { seed, steps: result.steps, steps_per_minute: perMinute, violations };
    process.stdout.write(`${JSON.stringify(line)}\n`);
    return violations;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    process.stderr.write(`${error.message}\n${usage}`);
    return 2;
  }
}

// `npm run simulate [-- options]`: the trace of a violation, and one line of JSON.
if (import.meta.main) process.exitCode = await main();

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
