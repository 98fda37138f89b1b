import { readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { migrate } from "../store/schema/migrate.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "./embedded.ts";
import { queryOnce, temporaryFolder, withoutSync } from "./testing/homes.ts";

const folder = await temporaryFolder();
const home = join(folder, "home");
const file = join(home, "postgres-passwords.json");
const start = () =>
  startEmbeddedPostgres({ home, systemDirectory: join(folder, "system"), settings: withoutSync, log: () => undefined });
let postgres: EmbeddedPostgres = await start();
afterAll(() => postgres.stop());

test("a login requires a password, for any account of the operating system", async () => {
  for (const role of ["postgres", "paybell", "paybell_owner"]) {
    const withoutPassword = postgres.connectionString.replace(/\/\/[^@]*@/, `//${role}@`);
    await expect(queryOnce(withoutPassword, "SELECT 1"), role).rejects.toThrow(/password/);
    const wrong = postgres.connectionString.replace(/\/\/[^@]*@/, `//${role}:guessed@`);
    await expect(queryOnce(wrong, "SELECT 1"), role).rejects.toMatchObject({ code: "28P01" });
  }
});

test("the passwords are in the home for its owner alone, and in no log", async () => {
  expect(((await stat(file)).mode & 0o777).toString(8)).toBe("600");
  const passwords = Object.values(JSON.parse(await readFile(file, "utf8")) as Record<string, string>);
  expect(new Set(passwords).size).toBe(3);
  const log = await readFile(join(home, "postgres.log"), "utf8");
  for (const password of passwords) expect(log).not.toContain(password);
});

test("neither the service's role nor the owner's may leave the database, or change roles", async () => {
  for (const url of [postgres.connectionString, postgres.ownerConnectionString]) {
    expect(
      await queryOnce(url, "SELECT rolsuper OR rolcreaterole OR rolcreatedb AS may FROM pg_roles WHERE rolname = user"),
    ).toEqual([{ may: false }]);
    for (const sql of [
      "COPY (SELECT 1) TO PROGRAM 'id'",
      "SELECT pg_read_file('/etc/passwd')",
      "CREATE DATABASE other",
      "ALTER ROLE paybell SUPERUSER",
      "SET ROLE postgres",
      "ALTER SYSTEM SET log_statement = 'all'",
    ]) {
      await expect(queryOnce(url, sql), sql).rejects.toMatchObject({ code: "42501" });
    }
    await expect(queryOnce(url.replace("/paybell?", "/postgres?"), "SELECT 1")).rejects.toMatchObject({
      code: "42501",
    });
  }
});

test("the service's role makes no tables", async () => {
  await expect(queryOnce(postgres.connectionString, "CREATE TABLE mine ()")).rejects.toMatchObject({ code: "42501" });
  expect(await migrate(postgres.ownerConnectionString)).toContain("0001_baseline.sql");
});

test("data without its passwords is refused, with a remedy", async () => {
  await postgres.stop();
  await rename(file, `${file}.away`);
  const missing = { code: "passwords_missing", remedy: expect.stringContaining("backup") };
  await expect(start()).rejects.toMatchObject(missing);
  await writeFile(file, "{");
  await expect(start()).rejects.toMatchObject(missing);
  await writeFile(file, JSON.stringify({ superuser: "a", owner: "b", service: "c" }));
  await expect(start()).rejects.toMatchObject({ ...missing, message: expect.stringContaining("has other ones") });
  await rename(`${file}.away`, file);
  postgres = await start();
  expect(await queryOnce(postgres.connectionString, "SELECT current_user AS role")).toEqual([{ role: "paybell" }]);
});
