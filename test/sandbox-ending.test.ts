import { chmod, mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { sale } from "./support/commands.ts";
import { type SpokenProcess, spawnPaybell } from "./support/instance.ts";
import { freePort } from "./support/ports.ts";
import { callHttp } from "./support/service.ts";

let home: string;
let sandbox: SpokenProcess;
/** The process of its PostgreSQL. */
let postmaster: number;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "paybell-ending-"));
  // PostgreSQL's own user must be able to reach its data below this folder.
  await chmod(home, 0o711);
});
afterAll(() => rm(home, { recursive: true, force: true }));

// One home for all tests, so that its data is created once, in a hook, outside the tests' time limits.
// Measured on a machine with nine programs for each core: up to 18 s to the first line, 2 s for the ending.
beforeEach(async () => {
  sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) });
  await sandbox.said((line) => line.match(/Ctrl-C stops/));
  postmaster = Number((await readFile(join(home, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);
});
afterEach(() => sandbox.signal("SIGKILL"));

test("a sandbox whose terminal is closed stops in order, and leaves no PostgreSQL behind", async () => {
  sandbox.stopListening();
  sandbox.signal("SIGHUP");
  expect(await sandbox.exited).toBe(0);
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});

test("a second signal waits for nothing in flight, and leaves no PostgreSQL behind", async () => {
  const { baseUrl, apiKey } = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Record<string, string>;
  // It has no answer before the stop's own limit, and it was answered 202: the bank has it.
  const unanswered = sale({ card: { token: "tok_timeout" } });
  const headers = { prefer: "respond-async" };
  const asked = await callHttp(baseUrl ?? "", "POST", "/v1/commands", { key: apiKey ?? "", json: unanswered, headers });
  expect(asked.status).toBe(202);

  sandbox.signal("SIGINT");
  await sandbox.said((line) => line.match(/Stopping/));
  sandbox.signal("SIGTERM");
  expect(await sandbox.exited).toBe(0);
  expect(sandbox.output()).not.toContain("Stopped.");
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});

test("a start that fails late says why in one line, and leaves no PostgreSQL behind", async () => {
  sandbox.signal("SIGINT");
  expect(await sandbox.exited).toBe(0);
  const credentials = join(home, "sandbox.json");
  await rm(credentials);
  // It cannot be written; by then the service works on its database.
  await mkdir(credentials);
  try {
    const failed = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) });
    expect(await failed.exited).toBe(1);
    expect(failed.output().trim().split("\n")).toEqual([expect.stringContaining("EISDIR")]);
    await expect(readFile(join(home, "postgres", "postmaster.pid"))).rejects.toThrow("ENOENT");
  } finally {
    await rm(credentials, { recursive: true });
  }
});
