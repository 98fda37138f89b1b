import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { identify, type ProcessIdentity } from "./process.ts";
import { acquireServiceLock } from "./service-lock.ts";
import { temporaryFolder, withoutSync } from "./testing/homes.ts";
import { spawnService } from "./testing/service-process.ts";

const folder = await temporaryFolder();
const children: ChildProcess[] = [];
const contenders: ProcessIdentity[] = [];

beforeAll(async () => {
  for (let count = 0; count < 5; count += 1) {
    const child = spawn("sleep", ["600"]);
    await once(child, "spawn");
    const identity = await identify(child.pid ?? 0);
    if (identity !== undefined) contenders.push(identity);
    children.push(child);
  }
});

afterAll(async () => {
  for (const child of children) {
    child.kill();
    await once(child, "exit");
  }
});

async function emptyHome(): Promise<string> {
  const home = join(folder, "claims");
  await rm(home, { recursive: true, force: true });
  await mkdir(home);
  return home;
}

test("a second service on one home names the first one's process, and the first continues", async () => {
  const home = join(folder, "home");
  const systemDirectory = join(folder, "system");
  const first = spawnService({ home, systemDirectory });
  const { pid } = await first.report;
  await expect(
    startEmbeddedPostgres({ home, systemDirectory, log: () => undefined, settings: withoutSync }),
  ).rejects.toMatchObject({
    name: "PostgresStartError",
    code: "home_in_use",
    message: expect.stringContaining(`process ${first.pid}`),
    remedy: expect.stringContaining("PAYBELL_HOME"),
  });
  expect(await identify(pid)).toBeDefined();
  await first.stop();
  const next = await startEmbeddedPostgres({ home, systemDirectory, log: () => undefined, settings: withoutSync });
  await next.stop();
});

test("one process cannot take a home twice", async () => {
  const home = await emptyHome();
  const lock = await acquireServiceLock(home);
  await expect(acquireServiceLock(home)).rejects.toMatchObject({ code: "home_in_use" });
  await lock.release();
  await (await acquireServiceLock(home)).release();
});

test("the lock of a dead process is taken over, also if its process id was reused", async () => {
  const home = await emptyHome();
  const child = spawn("sleep", ["600"]);
  await once(child, "spawn");
  const identity = await identify(child.pid ?? 0);
  if (identity === undefined) throw new Error("the child has no identity");
  await acquireServiceLock(home, identity);
  await expect(acquireServiceLock(home)).rejects.toMatchObject({ message: expect.stringContaining(`${child.pid}`) });
  child.kill();
  await once(child, "exit");
  await acquireServiceLock(home, { pid: process.pid, startedAt: "another boot/1" });
  const lock = await acquireServiceLock(home);
  await lock.release();
  expect(await readdir(join(home, "service.lock"))).toEqual([]);
});

test("of any number of concurrent claims at most one holds the home, and afterwards it is free again", async () => {
  const plan = fc.array(fc.integer({ min: 0, max: 3 }), { minLength: 2, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(plan, async (turns) => {
      const home = await emptyHome();
      const claims = turns.map(async (turnsLater, index) => {
        for (let turn = 0; turn < turnsLater; turn += 1) await readdir(home);
        return acquireServiceLock(home, contenders[index]);
      });
      const held = (await Promise.allSettled(claims)).filter((claim) => claim.status === "fulfilled");
      expect(held.length).toBeLessThanOrEqual(1);
      for (const { value } of held) await value.release();
      await (await acquireServiceLock(home)).release();
    }),
    { numRuns: 50 },
  );
});
