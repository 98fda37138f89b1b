import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { isRunning, queryOnce, temporaryFolder, withoutSync } from "./testing/homes.ts";
import { spawnService } from "./testing/service-process.ts";

const folder = await temporaryFolder();
const systemDirectory = join(folder, "system");
const home = join(folder, "home");

test("the next start stops a PostgreSQL whose service was killed, and has what was committed", async () => {
  const service = spawnService({ home, systemDirectory });
  const orphan = await service.report;
  await queryOnce(orphan.superuserConnectionString, "CREATE TABLE kept AS SELECT 42 AS answer");
  await service.kill();
  const lines: string[] = [];
  const postgres = await startEmbeddedPostgres({
    home,
    systemDirectory,
    log: (line) => lines.push(line),
    settings: withoutSync,
  });
  expect(postgres.pid).not.toBe(orphan.pid);
  expect(await isRunning(orphan.pid)).toBe(false);
  expect(postgres.connectionString).toBe(orphan.connectionString);
  expect(lines.join()).toContain(`process ${orphan.pid}`);
  expect(await queryOnce(postgres.superuserConnectionString, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
  await postgres.stop();
  await expect(stat(postgres.socketDirectory)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a home too long for a socket gets a short folder, which goes with its server", async () => {
  const long = join(folder, "l".repeat(100));
  const service = spawnService({ home: long, systemDirectory });
  const orphan = await service.report;
  await service.kill();
  expect(orphan.socketDirectory.startsWith(long)).toBe(false);
  const { mode } = await stat(orphan.socketDirectory);
  expect((mode & 0o777).toString(8)).toBe("700");
  const postgres = await startEmbeddedPostgres({
    home: long,
    systemDirectory,
    log: () => undefined,
    settings: withoutSync,
  });
  await postgres.stop();
  await expect(stat(orphan.socketDirectory)).rejects.toMatchObject({ code: "ENOENT" });
});

test("a stale postmaster.pid with another program's process id prevents no start, and harms no program", async () => {
  const { uid, gid } = await stat(join(home, "postgres"));
  const other = spawn("sleep", ["600"], process.getuid?.() === 0 ? { uid, gid } : {});
  await once(other, "spawn");
  const file = join(home, "postgres", "postmaster.pid");
  const note = [
    String(other.pid),
    join(home, "postgres"),
    "1700000000",
    "5432",
    join(home, "x"),
    "",
    "1 1",
    "ready",
    "",
  ];
  await writeFile(file, note.join("\n"));
  const postgres = await startEmbeddedPostgres({ home, systemDirectory, log: () => undefined, settings: withoutSync });
  expect(postgres.pid).not.toBe(other.pid);
  await postgres.stop();
  expect(other.exitCode).toBeNull();
  other.kill();
  await once(other, "exit");

  // The same file, and nobody wears the number any more.
  await writeFile(file, note.join("\n"));
  const again = await startEmbeddedPostgres({ home, systemDirectory, log: () => undefined, settings: withoutSync });
  await again.stop();
});

test("a service killed while the data directory is made leaves nothing half-made", async () => {
  // A busy machine may kill it too late, when the directory is made: then another one is begun.
  for (let nth = 1, isMade = true; isMade; nth += 1) {
    const fresh = join(folder, `fresh-${nth}`);
    const service = spawnService({ home: fresh, systemDirectory });
    // The draft's first file: initdb is at work.
    const hasBegun = async () => {
      const names = await readdir(fresh).catch((): string[] => []);
      const draft = names.find((name) => name.startsWith("postgres.init-"));
      return (
        names.includes("postgres") || (draft !== undefined && existsSync(join(fresh, draft, "data", "PG_VERSION")))
      );
    };
    await expect.poll(hasBegun, { interval: 2 }).toBe(true);
    await service.kill();
    isMade = (await readdir(fresh)).includes("postgres");
    const postgres = await startEmbeddedPostgres({
      home: fresh,
      systemDirectory,
      log: () => undefined,
      settings: withoutSync,
    });
    expect(await queryOnce(postgres.connectionString, "SELECT 1 AS one")).toEqual([{ one: 1 }]);
    await postgres.stop();
  }
});
