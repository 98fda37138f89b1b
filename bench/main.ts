import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runBench } from "./bench.ts";
import { type Cleanup, runCommand } from "./command.ts";
import { readOptions, usage } from "./options.ts";
import { measurePairs, pairLines, pairSummary } from "./pairs.ts";
import { summary, tableLines } from "./report.ts";

const results = join(import.meta.dirname, "results");

async function run(cleanup: Cleanup): Promise<number> {
  const options = readOptions(process.argv.slice(2));
  await mkdir(results, { recursive: true });
  const note = (line: string) => void process.stderr.write(`${line}\n`);
  if (options.against !== undefined) {
    const pairs = await measurePairs(options.against, options.pairs, cleanup, note);
    process.stdout.write(`${pairLines(pairs).join("\n")}\n${JSON.stringify(pairSummary(pairs))}\n`);
    return 0;
  }
  const result = await runBench(options, cleanup, note);
  const path = join(results, `${new Date().toISOString().replaceAll(":", "-")}.json`);
  const parts = [...options.parts];
  await writeFile(path, `${JSON.stringify({ options: { ...options, parts }, ...result }, null, 2)}\n`);
  process.stdout.write(`${tableLines(result).join("\n")}\n`);
  if (options.quick) process.stdout.write(`${JSON.stringify(summary(result))}\n`);
  return 0;
}

// `npm run bench [-- options]`: a table on stdout, progress on stderr, everything as JSON in bench/results.
if (import.meta.main) process.exit(await runCommand(run, usage));
