import { Cleanup } from "../bench/environment.ts";
import { type FaultOptions, readOptions, usage } from "./options.ts";
import { runFaults, summaryOf } from "./run.ts";

/** After Ctrl-C the current step ends first, because nothing else would stop the processes it started. */
const endsWithinMs = 15_000;

async function main(): Promise<number> {
  const cleanup = new Cleanup();
  const interrupted = Promise.withResolvers<undefined>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => interrupted.resolve(undefined));
  const running = run(cleanup);
  const code = await Promise.race([running, interrupted.promise]);
  await cleanup.run();
  if (code !== undefined) return code;
  await Promise.race([running, new Promise((resolve) => setTimeout(resolve, endsWithinMs))]);
  await cleanup.run();
  return 130;
}

/** Never rejects: what went wrong is the exit code. */
async function run(cleanup: Cleanup): Promise<number> {
  const options = optionsOrUsage();
  if (options === undefined) return 2;
  try {
    const verdict = await runFaults(options, cleanup, (line) => process.stderr.write(`${line}\n`));
    for (const line of verdict.broken) process.stdout.write(`${line}\n`);
    process.stdout.write(`${verdict.settlements} settlements were held against the IPNs of their batches\n`);
    process.stdout.write(`${JSON.stringify(summaryOf(options.seed, verdict))}\n`);
    return verdict.broken.length === 0 ? 0 : 1;
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.stack : error}\n`);
    return 1;
  }
}

function optionsOrUsage(): FaultOptions | undefined {
  try {
    return readOptions(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : error}\n${usage}`);
    return undefined;
  }
}

// `npm run faults [-- options]`: progress on stderr; on stdout what was broken, then one line of JSON.
if (import.meta.main) process.exit(await main());
