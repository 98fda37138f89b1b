import { readOptions, usage } from "./options.ts";
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
