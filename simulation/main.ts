import { parseArgs } from "node:util";
import { exitCodeOf, wholeNumber } from "../bench/command.ts";
import { type SimulationResult, simulate } from "./simulation.ts";

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
  const { seed, steps, about, lines } = readOptions(process.argv.slice(2), Date.now());
  const startedMs = performance.now();
  const result = await simulate({ seed, steps });
  const tookMs = performance.now() - startedMs;
  process.stdout.write(describe(result, seed, lines, about));
  const perMinute = Math.round((result.steps / tookMs) * 60_000);
  const violations = result.violation === undefined ? 0 : 1;
  const line = { seed, steps: result.steps, steps_per_minute: perMinute, violations };
  process.stdout.write(`${JSON.stringify(line)}\n`);
  return violations;
}

const usage = `npm run simulate -- [--seed S] [--steps N] [--about PATTERN] [--lines N]

  --seed    a whole number: the same one gives the same run (default: by the clock)
  --steps   how many events to simulate (default: 1000000)
  --about   after a violation, shows only the lines of the trace that match
  --lines   after a violation, shows so many lines of the trace (default: 60)
`;

// `npm run simulate [-- options]`: the trace of a violation, and one line of JSON.
if (import.meta.main) process.exitCode = await exitCodeOf(main, usage);

/** @throws UsageError for options that are not understood */
export function readOptions(args: readonly string[], nowMs: number) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args: [...args], options: { seed: text, steps: text, lines: text, about: text } });
  return {
    seed: wholeNumber("--seed", values.seed, nowMs % 1_000_000_000, 0),
    steps: wholeNumber("--steps", values.steps, 1_000_000, 0),
    lines: wholeNumber("--lines", values.lines, 60, 0),
    about: values.about === undefined ? undefined : new RegExp(values.about),
  };
}
