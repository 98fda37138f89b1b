import { spawn } from "node:child_process";
import { once } from "node:events";
import { CitusMissing, requireCitus, startCluster } from "./cluster.ts";

/** The whole system as callers see it, and a round of faults on the nodes. */
const suites = [
  "test/sale.test.ts",
  "test/completions.test.ts",
  "test/order.test.ts",
  "test/outcomes.test.ts",
  "test/pull.test.ts",
  "test/reports.test.ts",
  "test/idempotency.test.ts",
  "test/batch.test.ts",
  "test/retries.test.ts",
  "test/terminals.test.ts",
  "test/citus/faults.test.ts",
];

// `npm run citus [-- test files]`: exit code 0 when all passed, 2 when something is not installed.
async function main(files: readonly string[]): Promise<number> {
  try {
    await requireCitus();
  } catch (error) {
    if (!(error instanceof CitusMissing)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  const cluster = await startCluster();
  try {
    const env = {
      ...process.env,
      PAYBELL_TEST_CITUS: cluster.urls.join(" "),
      PAYBELL_TEST_CITUS_FOLDER: cluster.folder,
    };
    // One file at a time: three servers share the processors with it.
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--no-file-parallelism"];
    const child = spawn(process.execPath, [...vitest, ...(files.length > 0 ? files : suites)], {
      stdio: "inherit",
      env,
    });
    // The servers outlive an interruption until the tests have ended.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill(signal));
    const [code] = await once(child, "exit");
    return code ?? 1;
  } finally {
    await cluster.stop();
  }
}

process.exit(await main(process.argv.slice(2)));
