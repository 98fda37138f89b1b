import { existsSync } from "node:fs";
import { chmod, mkdtemp, utimes } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isRunning } from "../../packages/server/src/postgres/testing/homes.ts";
import { spawnService } from "../../packages/server/src/postgres/testing/service-process.ts";
import { parentOfRuns, removeLeftovers, testHomePrefix } from "./leftovers.ts";
import { temporaryFolder } from "./temporary.ts";

async function folderOfARun(): Promise<string> {
  const folder = await mkdtemp(join(await parentOfRuns(), testHomePrefix));
  await chmod(folder, 0o711);
  return folder;
}

test("the server and the folder of a killed run are removed, those of a living run and of a test stay", async () => {
  const ofATest = temporaryFolder();
  const [dead, living] = await Promise.all([folderOfARun(), folderOfARun()]);
  const killed = spawnService({ home: join(dead, "home") });
  const running = spawnService({ home: join(living, "home") });
  const [orphan, server] = await Promise.all([killed.report, running.report]);
  await killed.kill();
  const longAgo = new Date(Date.now() - 3_600_000);
  await Promise.all([dead, living, ofATest].map((folder) => utimes(folder, longAgo, longAgo)));

  await removeLeftovers();
  // Another run on this machine may have begun with them at that moment.
  await expect.poll(() => isRunning(orphan.pid)).toBe(false);
  await expect.poll(() => existsSync(dead)).toBe(false);
  expect(await isRunning(server.pid)).toBe(true);
  expect(existsSync(ofATest)).toBe(true);

  await running.stop();
  await removeLeftovers();
  await expect.poll(() => existsSync(living)).toBe(false);
});
