import { chmod, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { type SpokenProcess, spawnPaybell } from "./support/instance.ts";
import { freePort } from "./support/ports.ts";
import { callHttp } from "./support/service.ts";

// One home for all tests, so that its data is created once.
let home: string;
let sandbox: SpokenProcess | undefined;
/** The one that the test before left running. */
let running: Awaited<ReturnType<typeof start>> | undefined;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "paybell-ending-"));
  // PostgreSQL's own user must be able to reach its data below this folder.
  await chmod(home, 0o711);
});
afterAll(async () => {
  sandbox?.signal("SIGKILL");
  await rm(home, { recursive: true, force: true });
});

async function spawn(env: NodeJS.ProcessEnv = {}): Promise<SpokenProcess> {
  sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()), ...env });
  return sandbox;
}

async function start(env?: NodeJS.ProcessEnv) {
  const started = await spawn(env);
  await started.said((line) => line.match(/Ctrl-C stops/));
  const postmaster = Number((await readFile(join(home, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);
  const { baseUrl = "", apiKey: key = "" } = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8"));
  const run = (json: unknown, headers = {}) => callHttp(baseUrl, "POST", "/v1/commands", { key, json, headers });
  const get = (path: string) => callHttp(baseUrl, "GET", path, { key });
  const expectNoPostgres = () => expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
  return { ...started, run, get, expectNoPostgres };
}

test("a start that fails late says why in one line, and leaves no PostgreSQL behind", async () => {
  const credentials = join(home, "sandbox.json");
  // It cannot be written; by then the service works on its database.
  await mkdir(credentials);
  const failed = await spawn();
  expect(await failed.exited).toBe(1);
  expect(failed.output().trim().split("\n")).toEqual([expect.stringContaining("EISDIR")]);
  expect(await readFile(join(home, "postgres", "PG_VERSION"), "utf8")).toMatch(/^\d+\n$/);
  await expect(readFile(join(home, "postgres", "postmaster.pid"))).rejects.toThrow("ENOENT");
  await rm(credentials, { recursive: true });
});

test("a closed terminal ends a sandbox in order, and what an outage left in doubt is so until the next one starts", async () => {
  const during = await start({ PAYBELL_SIMULATOR_OUTAGE: "no_answer", PAYBELL_ACQUIRER_TIMEOUT_MS: "1000" });
  const inDoubt = { status: "ERROR", isoResponseCode: "68" };
  const { body, text } = await during.run(sale());
  expect(body, text).toMatchObject(inDoubt);
  const path = `/v1/transactions/${String(body["id"])}`;
  expect((await during.get(path)).body).toMatchObject({ reversal: "pending" });
  during.stopListening();
  during.signal("SIGHUP");
  expect(await during.exited).toBe(0);
  during.expectNoPostgres();

  const next = await start();
  running = next;
  const found = async () => (await next.get(path)).body;
  await expect.poll(found, { interval: 100 }).toMatchObject({ ...inDoubt, reversal: "done" });
});

test("a second signal waits for nothing in flight, and leaves no PostgreSQL behind", async () => {
  const last = running ?? (await start());
  // It has no answer before the stop's own limit, and it was answered 202: the bank has it.
  const unanswered = await last.run(sale({ card: { token: "tok_timeout" } }), { prefer: "respond-async" });
  expect(unanswered.status).toBe(202);

  last.signal("SIGINT");
  await last.said((line) => line.match(/Stopping/));
  last.signal("SIGTERM");
  expect(await last.exited).toBe(0);
  expect(last.output()).not.toContain("Stopped.");
  last.expectNoPostgres();
});
