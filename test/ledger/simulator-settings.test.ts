import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { type SpokenProcess, spawnPaybell } from "../support/instance.ts";
import { freePort } from "../support/ports.ts";
import { callHttp } from "../support/service.ts";

let home: string;
let sandbox: SpokenProcess;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "paybell-simulator-"));
  // PostgreSQL's own user must be able to reach its data below this folder.
  await chmod(home, 0o711);
});
afterAll(() => rm(home, { recursive: true, force: true }));
afterEach(async () => {
  sandbox.signal("SIGTERM");
  expect(await sandbox.exited, sandbox.output()).toBe(0);
});

interface Sandbox {
  run(json: Readonly<Record<string, unknown>>): ReturnType<typeof callHttp>;
  get(path: string): ReturnType<typeof callHttp>;
}

async function startSandbox(env: NodeJS.ProcessEnv): Promise<Sandbox> {
  const PAYBELL_PORT = String(await freePort());
  sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT, ...env });
  await sandbox.said((line) => line.match(/Ctrl-C stops/));
  const written = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Record<string, string>;
  const { baseUrl = "", apiKey: key = "" } = written;
  return {
    run: (json) => callHttp(baseUrl, "POST", "/v1/commands", { key, json }),
    get: (path) => callHttp(baseUrl, "GET", path, { key }),
  };
}

test("a transaction in doubt after a simulated outage stays so until the sandbox starts without it", async () => {
  const during = await startSandbox({ PAYBELL_SIMULATOR_OUTAGE: "no_answer" });
  const { body, text } = await during.run(sale());
  expect(body, text).toMatchObject({ status: "ERROR", isoResponseCode: "68" });
  const path = `/v1/transactions/${String(body["id"])}`;
  expect((await during.get(path)).body).toMatchObject({ reversal: "pending" });
  sandbox.signal("SIGTERM");
  expect(await sandbox.exited, sandbox.output()).toBe(0);

  const after = await startSandbox({});
  await expect
    .poll(async () => (await after.get(path)).body, { interval: 100 })
    .toMatchObject({ status: "ERROR", isoResponseCode: "68", reversal: "done" });
});
