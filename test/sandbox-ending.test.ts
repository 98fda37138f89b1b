import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { sale } from "./support/commands.ts";
import { freePort, type SpokenProcess, spawnPaybell } from "./support/instance.ts";
import { callHttp } from "./support/service.ts";

interface Started {
  readonly sandbox: SpokenProcess;
  readonly home: string;
  /** The process of its PostgreSQL. */
  readonly postmaster: number;
}

async function startSandbox(): Promise<Started> {
  const home = await mkdtemp(join(tmpdir(), "paybell-ending-"));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  // Its PostgreSQL's own user has to reach its data below.
  await chmod(home, 0o711);
  const sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) });
  onTestFinished(() => sandbox.signal("SIGKILL"));
  await sandbox.said((line) => line.match(/Ctrl-C stops/));
  const postmaster = Number((await readFile(join(home, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);
  return { sandbox, home, postmaster };
}

test("a sandbox whose terminal is closed stops in order, and leaves no PostgreSQL behind", async () => {
  const { sandbox, postmaster } = await startSandbox();
  sandbox.stopListening();
  sandbox.signal("SIGHUP");
  expect(await sandbox.exited).toBe(0);
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});

test("a second Ctrl-C waits for nothing in flight, and leaves no PostgreSQL behind", async () => {
  const { sandbox, home, postmaster } = await startSandbox();
  const { baseUrl, apiKey } = JSON.parse(await readFile(join(home, "sandbox.json"), "utf8")) as Record<string, string>;
  // Nobody answers it before the stop's own bound, and its answer is asked for at once: it is in the bank's hands then.
  const unanswered = sale({ card: { token: "tok_timeout" } });
  const headers = { prefer: "respond-async" };
  const asked = await callHttp(baseUrl ?? "", "POST", "/v1/commands", { key: apiKey ?? "", json: unanswered, headers });
  expect(asked.status).toBe(202);

  sandbox.signal("SIGINT");
  await sandbox.said((line) => line.match(/Stopping/));
  sandbox.signal("SIGINT");
  expect(await sandbox.exited).toBe(0);
  expect(sandbox.output()).not.toContain("Stopped.");
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});
