import { execFile } from "node:child_process";
import { chown, mkdir, readdir, rm, statfs, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { socketDirectoryOf } from "./location.ts";
import { refusalError } from "./start-error.ts";
import { isRoot, queryOnce, temporaryFolder, withoutSync } from "./testing/homes.ts";

const folder = await temporaryFolder();
const systemDirectory = join(folder, "system");
const quiet = { log: () => undefined, settings: withoutSync, systemDirectory };
const home = join(folder, "home");
const run = promisify(execFile);

beforeAll(async () => {
  await (await startEmbeddedPostgres({ home, ...quiet })).stop();
});

test("more shared memory than the machine has is refused, naming the setting to lower", async () => {
  await expect(startEmbeddedPostgres({ home, ...quiet, settings: { shared_buffers: "8000GB" } })).rejects.toMatchObject(
    {
      code: "shared_memory",
      remedy: expect.stringContaining("shared_buffers"),
    },
  );
});

test("a socket's folder that someone else put there is not used", async () => {
  const long = join(folder, "l".repeat(100));
  const squatted = socketDirectoryOf(long);
  await mkdir(squatted);
  // Root's own folder is taken for one of ours, made before a crash: a stranger's is another user's.
  if (isRoot) await chown(squatted, 12_345, 12_345);
  else await rm(squatted, { recursive: true }).then(() => writeFile(squatted, ""));
  try {
    await expect(startEmbeddedPostgres({ home: long, ...quiet })).rejects.toMatchObject({
      code: "socket_unusable",
      message: expect.stringContaining(squatted),
    });
  } finally {
    await rm(squatted, { recursive: true });
  }
});

test("when the temporary folder is too long for a socket as well, the remedy is TMPDIR", () => {
  expect(() => socketDirectoryOf("/h".repeat(60), "/t".repeat(60))).toThrow(
    expect.objectContaining({ code: "socket_unusable", remedy: expect.stringContaining("TMPDIR") }),
  );
});

test("data of another major version are refused, naming both", async () => {
  const version = join(home, "postgres", "PG_VERSION");
  await writeFile(version, "17\n");
  await expect(startEmbeddedPostgres({ home, ...quiet })).rejects.toMatchObject({
    code: "other_major_version",
    message: expect.stringMatching(/PostgreSQL 17,.*PostgreSQL 18/),
  });
  await writeFile(version, "18\n");
});

test("broken data are refused with PostgreSQL's own words, and not changed", async () => {
  await truncate(join(home, "postgres", "global", "pg_control"), 10);
  const files = async () => (await readdir(join(home, "postgres"))).filter((name) => name !== "postmaster.pid");
  const before = await files();
  await expect(startEmbeddedPostgres({ home, ...quiet })).rejects.toMatchObject({
    code: "data_refused",
    message: expect.stringContaining("pg_control"),
    remedy: expect.stringContaining("backup"),
  });
  expect(await files()).toEqual(before);
});

test("a data directory that lost its version is not taken for an empty one", async () => {
  await rm(join(home, "postgres", "PG_VERSION"));
  await expect(startEmbeddedPostgres({ home, ...quiet })).rejects.toMatchObject({ code: "data_refused" });
  expect(await readdir(join(home, "postgres"))).toContain("global");
});

test.each([
  ["postgres: error while loading shared libraries: libicui18n.so.60: cannot open", "binaries_unusable"],
  ["spawn /x/bin/postgres ENOENT", "binaries_unusable"],
  [
    'FATAL:  lock file "/s/.s.PGSQL.5432.lock" already exists\nHINT:  Is another postmaster (PID 7) using',
    "socket_taken",
  ],
  ["FATAL:  could not map anonymous shared memory: Cannot allocate memory", "shared_memory"],
  ['FATAL:  data directory "/d" has invalid permissions', "home_not_permitted"],
  ["PANIC:  could not locate a valid checkpoint record", "data_refused"],
])("PostgreSQL's words %j are read as %s", (output, code) => {
  expect(refusalError({ output, dataDirectory: "/d", socketDirectory: "/s" })).toMatchObject({ code });
});

// Only root may mount a small disk to fill.
describe.runIf(isRoot)("on a full disk", () => {
  const disk = join(folder, "disk");
  let mounted = false;
  beforeAll(async () => {
    await mkdir(disk);
    mounted = await run("mount", ["-t", "tmpfs", "-o", "size=90m,mode=711", "tmpfs", disk]).then(
      () => true,
      () => false,
    );
  });
  afterAll(async () => {
    if (mounted) await run("umount", ["--lazy", disk]);
  });

  async function fillExcept(bytes: number): Promise<void> {
    await rm(join(disk, "ballast"), { force: true });
    const { bavail, bsize } = await statfs(disk);
    await writeFile(join(disk, "ballast"), Buffer.alloc(Math.max(0, bavail * bsize - bytes)));
  }

  test("the data directory cannot be made: nothing of it stays, and it is made once there is room", async (context) => {
    if (!mounted) context.skip("this system does not let us mount a small disk");
    await fillExcept(20 * 1024 * 1024);
    await expect(startEmbeddedPostgres({ home: join(disk, "home"), ...quiet })).rejects.toMatchObject({
      code: "disk_full",
      message: expect.stringContaining(disk),
    });
    expect((await readdir(join(disk, "home"))).filter((name) => name.startsWith("postgres.init"))).toEqual([]);
    await rm(join(disk, "ballast"));
    const postgres = await startEmbeddedPostgres({ home: join(disk, "home"), ...quiet });
    await queryOnce(postgres.superuserConnectionString, "CREATE TABLE kept AS SELECT 42 AS answer");
    await postgres.stop();
  });

  test("the server cannot start: what was committed is there once there is room", async (context) => {
    if (!mounted) context.skip("this system does not let us mount a small disk");
    await fillExcept(0);
    await expect(startEmbeddedPostgres({ home: join(disk, "home"), ...quiet })).rejects.toMatchObject({
      code: "disk_full",
    });
    await rm(join(disk, "ballast"));
    const postgres = await startEmbeddedPostgres({ home: join(disk, "home"), ...quiet });
    expect(await queryOnce(postgres.superuserConnectionString, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
    await postgres.stop();
  });
});
