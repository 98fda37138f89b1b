import { chown, mkdir, readdir, readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { isRoot, queryOnce, temporaryFolder } from "./testing/homes.ts";
import { spawnService } from "./testing/service-process.ts";

const folder = await temporaryFolder();
const nobody = { uid: 65_534, gid: 65_534 };

// Run as an ordinary user, every other test of this folder is one of this kind.
describe.runIf(isRoot)("as an ordinary user", () => {
  test("everything stays in the home and belongs to that user, after a killed service too", async () => {
    const owned = join(folder, "owned");
    await mkdir(owned);
    await chown(owned, nobody.uid, nobody.gid);
    const home = join(owned, "home");
    const first = spawnService({ home, ...nobody });
    const orphan = await first.report;
    const status = await readFile(`/proc/${orphan.pid}/status`, "utf8");
    expect(status).toMatch(/^Uid:\t65534\t65534\t/m);
    expect((await readdir(home)).sort()).toEqual([
      "postgres",
      "postgres-passwords.json",
      "postgres-socket",
      "postgres.log",
      "service.lock.sqlite",
      "service.pid",
    ]);
    expect(await stat(home)).toMatchObject({ uid: nobody.uid });
    expect(((await stat(home)).mode & 0o777).toString(8)).toBe("700");
    await first.kill();
    const second = spawnService({ home, ...nobody });
    const started = await second.report;
    expect(started.pid).not.toBe(orphan.pid);
    expect(await queryOnce(started.connectionString, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await second.stop();
  });

  test("root goes on with an ordinary user's data as that user", async () => {
    const home = join(folder, "owned", "home");
    const service = spawnService({ home, systemDirectory: join(folder, "system") });
    const { pid } = await service.report;
    expect(await readFile(`/proc/${pid}/status`, "utf8")).toMatch(/^Uid:\t65534\t65534\t/m);
    await service.stop();
    expect(await stat(join(home, "postgres"))).toMatchObject({ uid: nobody.uid });
  });

  test("a home that belongs to someone else is refused with a remedy", async () => {
    const service = spawnService({ home: join(folder, "not-theirs"), ...nobody });
    expect(await service.report).toMatchObject({
      code: "home_not_permitted",
      message: expect.stringContaining(join(folder, "not-theirs")),
      remedy: expect.stringContaining("PAYBELL_HOME"),
    });
    await service.stop();
  });

  test("a user that the system does not list gets an error that says so", async () => {
    const owned = join(folder, "unlisted");
    await mkdir(owned);
    await chown(owned, 54_321, 54_321);
    const service = spawnService({ home: join(owned, "home"), uid: 54_321, gid: 54_321 });
    expect(await service.report).toMatchObject({
      code: "account_unusable",
      message: expect.stringContaining("54321"),
      remedy: expect.stringContaining("/etc/passwd"),
    });
    await service.stop();
    expect((await readdir(join(owned, "home"))).sort()).toEqual(["postgres-passwords.json", "service.lock.sqlite"]);
  });
});
