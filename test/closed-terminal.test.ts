import { chmod, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { freePort, spawnPaybell } from "./support/instance.ts";

test("a sandbox whose terminal is closed stops in order, and leaves no PostgreSQL behind", async () => {
  const home = await mkdtemp(join(tmpdir(), "paybell-closed-"));
  // Its PostgreSQL's own user has to reach its data below.
  await chmod(home, 0o711);
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const sandbox = spawnPaybell(["sandbox"], { PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) });
  onTestFinished(() => sandbox.signal("SIGKILL"));
  await sandbox.said((line) => line.match(/Ctrl-C stops/));
  const postmaster = Number((await readFile(join(home, "postgres", "postmaster.pid"), "utf8")).split("\n")[0]);

  sandbox.stopListening();
  sandbox.signal("SIGHUP");
  expect(await sandbox.exited).toBe(0);
  expect(() => process.kill(postmaster, 0)).toThrow("ESRCH");
});
