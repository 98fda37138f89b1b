import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { acquireServiceLock, requireFreeHome } from "./service-lock.ts";
import { isRunning, temporaryFolder, withoutSync } from "./testing/homes.ts";
import { spawnService } from "./testing/service-process.ts";

const folder = await temporaryFolder();

test("a second service on one home names the first one's process, and the first continues", async () => {
  const home = join(folder, "home");
  const options = { home, systemDirectory: join(folder, "system"), log: () => undefined, settings: withoutSync };
  const first = spawnService(options);
  const { pid } = await first.report;
  const refused = {
    name: "PostgresStartError",
    code: "home_in_use",
    message: expect.stringContaining(`process ${first.pid}`),
    remedy: expect.stringContaining("PAYBELL_HOME"),
  };
  await expect(startEmbeddedPostgres(options)).rejects.toMatchObject(refused);
  await expect(requireFreeHome(home)).rejects.toMatchObject(refused);
  expect(await isRunning(pid)).toBe(true);
  await first.stop();
  const next = await startEmbeddedPostgres(options);
  await next.stop();
});

test("one process cannot take a home twice, and of any number of claims at once one holds it", async () => {
  const claims = Array.from({ length: 5 }, () => acquireServiceLock(folder));
  const [held, ...others] = (await Promise.allSettled(claims)).filter((claim) => claim.status === "fulfilled");
  expect(others).toEqual([]);
  await expect(acquireServiceLock(folder)).rejects.toMatchObject({ code: "home_in_use" });
  await held?.value.release();
  await held?.value.release();
  await (await acquireServiceLock(folder)).release();
});

test("to ask whether a home is free makes none", async () => {
  await requireFreeHome(join(folder, "absent"));
  expect(await readdir(folder)).not.toContain("absent");
});
