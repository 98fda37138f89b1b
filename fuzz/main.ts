import { parseArgs } from "node:util";
import { exitCodeOf, namesOf, wholeNumber } from "../bench/command.ts";
import { type FuzzOptions, fuzz } from "./fuzz.ts";
import { fuzzRoutes } from "./routes.ts";
import { targets } from "./targets.ts";

const usage = "npm run fuzz -- [--target name] [--cases number] [--seconds number] [--seed number]\n";

const all = [
  ...targets.map((target) => ({ name: target.name, run: (options: FuzzOptions) => fuzz(target, options) })),
  { name: "routes", run: fuzzRoutes },
];
const names = all.map(({ name }) => name);

function readOptions(args: string[]) {
  const text = { type: "string" } as const;
  const { values } = parseArgs({ args, options: { target: text, cases: text, seconds: text, seed: text } });
  const chosen = values.target === undefined ? names : namesOf("--target", values.target, names);
  return {
    chosen: all.filter(({ name }) => chosen.includes(name)),
    casesMax: wholeNumber("--cases", values.cases, 1_000_000, 0),
    durationMs: wholeNumber("--seconds", values.seconds, 3_600, 0) * 1_000,
    seed: wholeNumber("--seed", values.seed, Date.now() % 1_000_000, 0),
  };
}

async function main(): Promise<number> {
  const { chosen, ...options } = readOptions(process.argv.slice(2));
  let failures = 0;
  for (const target of chosen) {
    const { failure, ...result } = await target.run(options);
    process.stdout.write(`${JSON.stringify({ ...result, seed: options.seed, failed: failure !== undefined })}\n`);
    if (failure === undefined) continue;
    failures += 1;
    const why = failure.error instanceof Error ? (failure.error.stack ?? failure.error.message) : String(failure.error);
    process.stdout.write(`${JSON.stringify(failure.input.toString("latin1"))}\n${why}\n`);
  }
  return failures === 0 ? 0 : 1;
}

// `npm run fuzz [-- options]`: one line of JSON for each target, and the input that was not borne.
if (import.meta.main) process.exitCode = await exitCodeOf(main, usage);
