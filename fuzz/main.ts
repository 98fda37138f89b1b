import { parseArgs } from "node:util";
import { type FuzzOptions, fuzz } from "./fuzz.ts";
import { fuzzRoutes } from "./routes.ts";
import { targets } from "./targets.ts";

const usage = "npm run fuzz -- [--target name] [--cases number] [--seconds number] [--seed number]\n";

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      target: { type: "string" },
      cases: { type: "string", default: "1000000" },
      seconds: { type: "string", default: "3600" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const all = [
    ...targets.map((target) => ({ name: target.name, run: (options: FuzzOptions) => fuzz(target, options) })),
    { name: "routes", run: fuzzRoutes },
  ];
  const chosen = all.filter(({ name }) => values.target === undefined || values.target === name);
  const [casesMax, seconds, seed] = [Number(values.cases), Number(values.seconds), Number(values.seed)];
  if (chosen.length === 0 || ![casesMax, seconds, seed].every((number) => number >= 0)) {
    process.stderr.write(usage);
    return 2;
  }
  let failures = 0;
  for (const target of chosen) {
    const { failure, ...result } = await target.run({ seed, casesMax, durationMs: seconds * 1_000 });
    process.stdout.write(`${JSON.stringify({ ...result, seed, failed: failure !== undefined })}\n`);
    if (failure === undefined) continue;
    failures += 1;
    const why = failure.error instanceof Error ? (failure.error.stack ?? failure.error.message) : String(failure.error);
    process.stdout.write(`${JSON.stringify(failure.input.toString("latin1"))}\n${why}\n`);
  }
  return failures === 0 ? 0 : 1;
}

// `npm run fuzz [-- options]`: one line of JSON for each target, and the input that was not borne.
if (import.meta.main) process.exitCode = await main();
