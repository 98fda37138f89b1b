import { appendFile, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { startEmbeddedPostgres } from "./embedded.ts";
import { isRunning, queryOnce, temporaryFolder } from "./testing/homes.ts";

const folder = await temporaryFolder();
// A comma, a quote, a space and an accent: each has its way of breaking a path on the way to PostgreSQL.
const home = join(folder, `pay "bell", café`);
const systemDirectory = join(folder, "system");
const quiet = { log: () => undefined, systemDirectory };
let postgres = await startEmbeddedPostgres({ home, ...quiet });
afterAll(() => postgres.stop());

const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);

async function restart(): Promise<void> {
  await postgres.stop();
  postgres = await startEmbeddedPostgres({ home, ...quiet });
}

test("it is PostgreSQL 18, with a UTF-8 database whose order is that of code points", async () => {
  expect(postgres.version).toMatch(/^18\./);
  const rows = await queryOnce(
    postgres.connectionString,
    `SELECT current_database() AS name, current_user AS user, 'Z' < 'a' AS bytes, lower('ĐÀ') AS lower,
     getdatabaseencoding() AS encoding`,
  );
  expect(rows).toEqual([{ name: "paybell", user: "paybell", bytes: true, lower: "đà", encoding: "UTF8" }]);
});

test("a commit is on the disk, and no statement or row reaches the log", async () => {
  const rows = await queryOnce<{ name: string; setting: string }>(
    postgres.connectionString,
    `SELECT name, setting FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes',
     'data_checksums', 'jit', 'listen_addresses')`,
  );
  expect(Object.fromEntries(rows.map((row) => [row.name, row.setting]))).toEqual({
    fsync: "on",
    synchronous_commit: "on",
    full_page_writes: "on",
    data_checksums: "on",
    jit: "off",
    listen_addresses: "",
  });
  await expect(
    queryOnce(
      postgres.superuserConnectionString,
      "CREATE TEMP TABLE cards (number text CHECK (number = '')); INSERT INTO cards VALUES ('4111-1111-1111-1111')",
    ),
  ).rejects.toThrow("violates check constraint");
  const log = await readFile(join(home, "postgres.log"), "utf8");
  expect(log).toContain("violates check constraint");
  // Digits alone may be those of a process id.
  expect(log).not.toMatch(/4111-|-1111/);
});

test("the socket's folder and the log are closed to others", async () => {
  expect(await modeOf(postgres.socketDirectory)).toBe("700");
  expect(await modeOf(join(home, "postgres.log"))).toBe("600");
  expect(await modeOf(join(home, "postgres"))).toBe("700");
});

test("committed rows are there after a restart, and a stop leaves neither process nor socket", async () => {
  await queryOnce(postgres.superuserConnectionString, "CREATE TABLE kept AS SELECT 42 AS answer");
  const { socketDirectory, pid } = postgres;
  await Promise.all([postgres.stop(), postgres.stop()]);
  expect(await isRunning(pid)).toBe(false);
  await expect(stat(socketDirectory)).rejects.toMatchObject({ code: "ENOENT" });
  postgres = await startEmbeddedPostgres({ home, ...quiet });
  expect(await queryOnce(postgres.superuserConnectionString, "SELECT answer FROM kept")).toEqual([{ answer: 42 }]);
});

test("a server that dies says so with its last words, and the next start recovers what was committed", async () => {
  await queryOnce(postgres.superuserConnectionString, "CREATE TABLE recovered AS SELECT 1 AS answer");
  process.kill(postgres.pid, "SIGQUIT");
  expect(await postgres.died).toContain("received immediate shutdown request");
  await restart();
  process.kill(postgres.pid, "SIGKILL");
  await postgres.died;
  await restart();
  expect(await queryOnce(postgres.superuserConnectionString, "SELECT answer FROM recovered")).toEqual([{ answer: 1 }]);
});

test("a requested stop is not reported as a failure", async () => {
  const stopped = postgres;
  await restart();
  const pending = Symbol("pending");
  expect(await Promise.race([stopped.died, Promise.resolve(pending)])).toBe(pending);
});

test("a log above 10 MB is put aside at the next start", async () => {
  const log = join(home, "postgres.log");
  await truncate(log, 11 * 1024 * 1024);
  await appendFile(log, "the old one\n");
  await restart();
  expect((await stat(`${log}.1`)).size).toBeGreaterThan(11 * 1024 * 1024);
  expect((await stat(log)).size).toBeLessThan(100_000);
});

test("a setting that PostgreSQL does not know ends the start with its name", async () => {
  await postgres.stop();
  await expect(startEmbeddedPostgres({ home, ...quiet, settings: { no_such_setting: "1" } })).rejects.toMatchObject({
    code: "settings_refused",
    message: expect.stringContaining("no_such_setting"),
  });
  postgres = await startEmbeddedPostgres({ home, ...quiet, settings: { listen_addresses: "*", work_mem: "9MB" } });
  expect(await queryOnce(postgres.connectionString, "SHOW listen_addresses")).toEqual([{ listen_addresses: "" }]);
  expect(await queryOnce(postgres.connectionString, "SHOW work_mem")).toEqual([{ work_mem: "9MB" }]);
});

test("a home that is a file is refused with a remedy", async () => {
  const file = join(folder, "file");
  await writeFile(file, "");
  await expect(startEmbeddedPostgres({ home: join(file, "home"), ...quiet })).rejects.toMatchObject({
    code: "home_not_permitted",
    remedy: expect.stringContaining("PAYBELL_HOME"),
  });
});
