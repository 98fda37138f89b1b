import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CitusMissing, nodeNames, requireCitus, startCitusNode } from "../../faults/citus.ts";
import { openUp, type PostgresServer } from "../../faults/postgres.ts";

/** Files and folders of whole-system tests that are not run on Citus, and why. */
const leftOut: Readonly<Record<string, string>> = {
  "test/certify": "starts no service",
  "test/console": "is about pages in a browser",
  "test/languages": "is about receivers in other languages",
  "test/ops": "is about documents, images and proxies of one PostgreSQL",
  "test/packages": "is about what is installed from packages",
  "test/support": "is about the tools of tests",
  "test/cli/command-line.test.ts": "starts no service",
  "test/cli/open.test.ts": "starts no service",
  "test/acquirer-host/alike.test.ts": "starts no service",
  "test/acquirer-host/command.test.ts": "starts no service",
  "test/acquirer-host/conformance.test.ts": "starts no service",
  "test/acquirer-host/faults.test.ts": "starts no service",
  "test/acquirer-host/model.test.ts": "starts no service: its ledger is over the tables of one schema",
  "test/database-password.test.ts": "is about the password of the embedded PostgreSQL; the nodes have none",
  "test/examples.test.ts": "is about the sandbox, which brings the embedded PostgreSQL",
  "test/sandbox.test.ts": "is about the sandbox, which brings the embedded PostgreSQL",
  "test/sandbox-ending.test.ts": "is about the sandbox, which brings the embedded PostgreSQL",
  "test/intake/clearing.test.ts": "stops processes by triggers on the tables of one schema",
  "test/stuck-notification.test.ts": "is about statements of one schema",
  "test/taken-port.test.ts": "is about the sandbox, which brings the embedded PostgreSQL",
  "test/tutorial.test.ts": "is about the sandbox, which brings the embedded PostgreSQL",
  "test/fairness.test.ts":
    "bounds a first attempt and an arrival by a second each; they took up to four on three servers",
  "test/faults/database-restart.test.ts": "stops the embedded PostgreSQL; test/citus/faults.test.ts kills nodes",
  "test/faults/database-away.test.ts": "cuts all off at one socket; test/citus/faults.test.ts cuts off nodes",
  "test/faults/silent-connection.test.ts": "silences one socket; test/citus/faults.test.ts holds back answers of nodes",
};

function wholeSystem(): readonly string[] {
  const isLeftOut = (file: string) => Object.keys(leftOut).some((path) => file === path || file.startsWith(`${path}/`));
  return globSync("test/**/*.test.ts")
    .filter((file) => !isLeftOut(file))
    .sort();
}

// `npm run citus [-- test files]`: exit code 0 when all passed, 2 when something is not installed.
async function main(files: readonly string[]): Promise<number> {
  try {
    await requireCitus();
  } catch (error) {
    if (!(error instanceof CitusMissing)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 2;
  }
  const folder = await mkdtemp(join(tmpdir(), "paybell-citus-"));
  const nodes: PostgresServer[] = [];
  try {
    await openUp(folder);
    for (const name of nodeNames) nodes.push(await startCitusNode(folder, name));
    const env = { ...process.env, PAYBELL_TEST_CITUS: nodes.map((node) => node.url()).join(" ") };
    // One file at a time: three servers share the processors with it.
    const vitest = ["node_modules/vitest/vitest.mjs", "run", "--no-file-parallelism"];
    const child = spawn(process.execPath, [...vitest, ...(files.length > 0 ? files : wholeSystem())], {
      stdio: "inherit",
      env,
    });
    // The servers outlive an interruption until the tests have ended.
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => child.kill(signal));
    const [code] = await once(child, "exit");
    return code ?? 1;
  } finally {
    await Promise.all(nodes.map((node) => node.stop()));
    await rm(folder, { recursive: true, force: true });
  }
}

process.exit(await main(process.argv.slice(2)));
