import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runBench } from "./bench.ts";
import { Cleanup } from "./environment.ts";
import { readOptions, usage } from "./options.ts";
import { measurePairs, pairLines, pairSummary } from "./pairs.ts";
import { summary, tableLines } from "./report.ts";

const results = join(import.meta.dirname, "results");

/** A start that Ctrl-C came into ends first: nobody else would stop what it began. */
const startEndsWithinMs = 15_000;

async function main(): Promise<number> {
  const cleanup = new Cleanup();
  const interrupted = Promise.withResolvers<undefined>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(signal, () => interrupted.resolve(undefined));
  const measuring = measure(cleanup);
  const ended = await Promise.race([measuring, interrupted.promise]);
  await cleanup.run();
  if (ended === undefined) {
    await Promise.race([measuring, after(startEndsWithinMs)]);
    await cleanup.run();
  } else if (ended instanceof TypeError) process.stderr.write(`${ended.message}\n${usage}`);
  else if (ended instanceof Error) process.stderr.write(`${ended.stack}\n`);
  else return 0;
  return ended === undefined ? 130 : 1;
}

function after(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Never rejects: what went wrong is the result. */
async function measure(cleanup: Cleanup): Promise<"done" | Error> {
  try {
    const options = readOptions(process.argv.slice(2));
    await mkdir(results, { recursive: true });
    const note = (line: string) => void process.stderr.write(`${line}\n`);
    if (options.against !== undefined) {
      const pairs = await measurePairs(options.against, options.pairs, cleanup, note);
      process.stdout.write(`${pairLines(pairs).join("\n")}\n${JSON.stringify(pairSummary(pairs))}\n`);
      return "done";
    }
    const result = await runBench(options, cleanup, note);
    const path = join(results, `${new Date().toISOString().replaceAll(":", "-")}.json`);
    const parts = [...options.parts];
    await writeFile(path, `${JSON.stringify({ options: { ...options, parts }, ...result }, null, 2)}\n`);
    process.stdout.write(`${tableLines(result).join("\n")}\n`);
    if (options.quick) process.stdout.write(`${JSON.stringify(summary(result))}\n`);
    return "done";
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

// `npm run bench [-- options]`: a table on stdout, progress on stderr, everything as JSON in bench/results.
if (import.meta.main) process.exit(await main());
