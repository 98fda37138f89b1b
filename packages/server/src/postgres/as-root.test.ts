import { chmod, cp, mkdir, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { installedBinaries, usableBinaries } from "./binaries.ts";
import { startEmbeddedPostgres } from "./embedded.ts";
import { isRoot, queryOnce, temporaryFolder, withoutSync } from "./testing/homes.ts";

const folder = await temporaryFolder();

// Only root runs PostgreSQL as someone else; an ordinary user's own way is as-user.test.ts.
describe.runIf(isRoot)("as root", () => {
  test("PostgreSQL runs as another user, without root's groups, and its data stays in the home", async () => {
    const home = join(folder, "open");
    const postgres = await startEmbeddedPostgres({
      home,
      log: () => undefined,
      settings: withoutSync,
      systemDirectory: join(folder, "unused"),
    });
    const status = await readFile(`/proc/${postgres.pid}/status`, "utf8");
    const owner = await stat(join(home, "postgres"));
    expect(owner.uid).not.toBe(0);
    expect(status).toMatch(new RegExp(`^Uid:\\t${owner.uid}\\t${owner.uid}\\t`, "m"));
    expect(status).toMatch(/^Groups:\s*$/m);
    await postgres.stop();
    expect(await readdir(folder)).not.toContain("unused");
  });

  test("a home that PostgreSQL's user cannot enter records where its data is, and finds it again", async () => {
    const [home, systemDirectory] = [join(folder, "closed"), join(folder, "system")];
    await mkdir(home, { mode: 0o700 });
    const lines: string[] = [];
    const start = () =>
      startEmbeddedPostgres({ home, systemDirectory, log: (line) => lines.push(line), settings: withoutSync });
    const first = await start();
    await queryOnce(first.superuserConnectionString, "CREATE TABLE kept AS SELECT 42 AS answer");
    await first.stop();
    const base = (await readFile(join(home, "postgres-location"), "utf8")).trim();
    expect(base.startsWith(`${systemDirectory}/`)).toBe(true);
    expect(lines).toEqual([expect.stringContaining(base)]);
    const second = await start();
    expect(await queryOnce(second.superuserConnectionString, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    await second.stop();

    await rm(base, { recursive: true });
    await expect(start()).rejects.toMatchObject({ code: "data_missing", message: expect.stringContaining(base) });
    expect(await readdir(systemDirectory)).toEqual([]);
  });

  test("data in a home that became inaccessible is not replaced by an empty database", async () => {
    const home = join(folder, "closed-later");
    const options = { home, log: () => undefined, settings: withoutSync, systemDirectory: join(folder, "system-2") };
    await (await startEmbeddedPostgres(options)).stop();
    await chmod(home, 0o700);
    await expect(startEmbeddedPostgres(options)).rejects.toMatchObject({ code: "home_not_permitted" });
  });

  test("binaries in a folder that PostgreSQL's user cannot enter are copied once for each version", async () => {
    const installed = await installedBinaries();
    const closed = join(folder, "root-only");
    await mkdir(closed, { mode: 0o700 });
    const native = join(closed, "native");
    await cp(installed.native, native, { recursive: true, verbatimSymlinks: true });
    const account = { uid: 65_534, gid: 65_534 };
    const copyTo = join(folder, "copies");
    const closedBinaries = { native, version: installed.version };
    const copies = await Promise.all([1, 2, 3].map(() => usableBinaries(closedBinaries, account, copyTo)));
    const target = join(copyTo, `postgres-${installed.version}`);
    expect(copies.map((copy) => copy.native)).toEqual([target, target, target]);
    expect(await readdir(copyTo)).toEqual([`postgres-${installed.version}`]);
    await writeFile(join(target, "mark"), "");
    await usableBinaries(closedBinaries, account, copyTo);
    expect(await readdir(target)).toContain("mark");
  });
});
