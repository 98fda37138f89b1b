import { parseArgs } from "node:util";
import { type FuzzOptions, fuzz } from "./fuzz.ts";
import { fuzzRoutes } from "./routes.ts";
import { targets } from "./targets.ts";

const usage = "npm run fuzz -- [--target name] [--cases number] [--seconds number] [--seed number]\n";

const all = [
  ...targets.map((target) => ({ name: target.name, run: (options: FuzzOptions) => fuzz(target, options) })),
  { name: "routes", run: fuzzRoutes },
];
const names = all.map(({ name }) => name).join(", ");

function readOptions(args: string[]) {
  const { values } = parseArgs({
    args,
    options: {
      target: { type: "string" },
      cases: { type: "string", default: "1000000" },
      seconds: { type: "string", default: "3600" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
    },
  });
  const chosen = all.filter(({ name }) => values.target === undefined || values.target === name);
  if (chosen.length === 0) throw new TypeError(`--target knows ${names}; found ${values.target}`);
  const [casesMax, seconds, seed] = [Number(values.cases), Number(values.seconds), Number(values.seed)];
  if (![casesMax, seconds, seed].every((number) => number >= 0)) {
    throw new TypeError("--cases, --seconds and --seed must be numbers");
  }
  return { chosen, casesMax, seconds, seed };
}

async function main(): Promise<number> {
  let options: ReturnType<typeof readOptions>;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`);
    return 2;
  }
  const { chosen, casesMax, seconds, seed } = options;
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
