import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runBench } from "./bench.ts";
import { readOptions, usage } from "./options.ts";
import { summary, tableLines } from "./report.ts";
import { Cleanup } from "./surroundings.ts";

const results = join(import.meta.dirname, "results");

// `npm run bench [-- options]`: a table on stdout, progress on stderr, everything as JSON in bench/results.
if (import.meta.main) process.exit(await main());

async function main(): Promise<number> {
  const cleanup = new Cleanup();
  const interrupted = Promise.withResolvers<number>();
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => interrupted.resolve(130));
  try {
    return await Promise.race([measure(cleanup), interrupted.promise]);
  } finally {
    await cleanup.run();
  }
}

async function measure(cleanup: Cleanup): Promise<number> {
  try {
    const options = readOptions(process.argv.slice(2));
    await mkdir(results, { recursive: true });
    const result = await runBench(options, cleanup, (line) => process.stderr.write(`${line}\n`));
    const path = join(results, `${new Date().toISOString().replaceAll(":", "-")}.json`);
    await writeFile(
      path,
      `${JSON.stringify({ options: { ...options, parts: [...options.parts] }, ...result }, null, 2)}\n`,
    );
    process.stdout.write(`${tableLines(result).join("\n")}\n`);
    if (options.quick) process.stdout.write(`${JSON.stringify(summary(result))}\n`);
    return 0;
  } catch (error) {
    process.stderr.write(error instanceof TypeError ? `${error.message}\n${usage}` : `${(error as Error).stack}\n`);
    return 1;
  }
}
