import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/ports.ts";
import { findNodes, type NodeFound, runsOn } from "./nodes.ts";
import { packAll, run } from "./project.ts";

// Installs the packed files with npm, and every dependency from the registry.
const nodes = await findNodes(process.env["PATH"] ?? "");
const shop = mkdtempSync(join(tmpdir(), "paybell-shop-"));
const bin = join(shop, "node_modules/paybell/bin/paybell.js");
let whyNot: string | undefined;

beforeAll(async () => {
  // PostgreSQL's own user can enter, so the sandbox's data are here, and are removed with the rest.
  chmodSync(shop, 0o711);
  const tarballs = (await packAll()).packed.map(({ tarball }) => tarball);
  await run("npm", ["init", "-y"], { cwd: shop });
  const args = ["install", "--prefer-offline", "--ignore-scripts", "--no-audit", "--no-fund"];
  await run("npm", [...args, ...tarballs], { cwd: shop }).catch((error: Error & { stderr?: string }) => {
    if (!/ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENOTCACHED/.test(error.stderr ?? "")) throw error;
    whyNot = "the dependencies could not be fetched";
  });
});
afterAll(() => rmSync(shop, { recursive: true, force: true }));

describe.each(nodes)("on Node $version", (node) => {
  const env = () => ({ ...process.env, PATH: `${dirname(node.path)}:${process.env["PATH"]}` });
  // What npx would run, without npm's own start.
  const paybell = (...args: string[]) => run(join(shop, "node_modules/.bin/paybell"), args, { cwd: shop, env: env() });

  test("the command runs, and prints its version", async ({ skip }) => {
    if (whyNot !== undefined) skip(whyNot);
    expect((await paybell("--version")).stdout).toMatch(/^\d+\.\d+\.\d+\n$/);
  });

  test("a sandbox starts in this folder, and a Sale's IPN is accepted by its receiver", async ({ skip }) => {
    if (whyNot !== undefined) skip(whyNot);
    if (!runsOn(">=22.22", node)) {
      await expect(paybell("sandbox")).rejects.toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^paybell: the service needs Node 22\.22 or newer/),
      });
      return;
    }
    await withSandbox(node, env(), async () => {
      const sale = await run(node.path, [bin, "trigger", "sale", "--json"], { cwd: shop, env: env() });
      expect(JSON.parse(sale.stdout)).toMatchObject({
        transaction: { status: "SUCCESS" },
        notification: { state: "accepted" },
      });
    });
  });
});

async function withSandbox(node: NodeFound, env: NodeJS.ProcessEnv, use: () => Promise<void>): Promise<void> {
  const sandbox = spawn(node.path, [bin, "sandbox"], {
    cwd: shop,
    env: { ...env, PAYBELL_PORT: String(await freePort()) },
  });
  const exited = once(sandbox, "exit");
  try {
    let output = "";
    for (const stream of [sandbox.stdout, sandbox.stderr]) stream.on("data", (chunk) => (output += chunk));
    while (!output.includes("Ctrl-C stops")) {
      const [what] = await Promise.race([once(sandbox.stdout, "data"), exited.then(() => ["ended"])]);
      if (what === "ended") throw new Error(`the sandbox ended: ${output}`);
    }
    await use();
  } finally {
    sandbox.kill("SIGINT");
    expect(await exited).toEqual([0, null]);
  }
}
