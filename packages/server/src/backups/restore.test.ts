import { execFile } from "node:child_process";
import { chown, mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { recoverySettings, restoreBackup } from "./restore.ts";

test("a restore to a time promotes there, in the form that PostgreSQL takes", () => {
  const settings = recoverySettings({ name: "of a test", walFolder: undefined, to: "2026-01-31T07:00:00.5Z" });
  expect(settings.trim().split("\n")).toEqual([
    "# By paybell restore:",
    "restore_command = 'false'",
    "recovery_target_time = '2026-01-31 07:00:00.5+00'",
    "recovery_target_action = 'promote'",
    "recovery_target_timeline = 'latest'",
    "paybell.restored = 'of a test'",
  ]);
});

test("the archive may be in a folder of any name", async () => {
  const root = temporaryFolder();
  const walFolder = join(root, `100%f o'clock\\n $HOME "x"`);
  await mkdir(walFolder);
  await writeFile(join(walFolder, "0001"), "a segment");
  const settings = recoverySettings({ name: "of a test", walFolder, to: undefined });
  expect(settings).toContain("recovery_target_time = ''");
  // As PostgreSQL reads its configuration, and then the command.
  const [, quoted = ""] = /^restore_command = '((?:[^'\\\n]|\\.|'')*)'$/m.exec(settings) ?? [];
  const command = quoted.replaceAll(/''|\\(.)/g, (_, escaped: string | undefined) => escaped ?? "'");
  const values: Readonly<Record<string, string>> = { f: "0001", p: join(root, "restored"), "%": "%" };
  await promisify(execFile)("/bin/sh", ["-c", command.replaceAll(/%(.)/g, (_, of: string) => values[of] ?? "")]);
  expect(await readFile(join(root, "restored"), "utf8")).toBe("a segment");
});

const manifest = {
  ...{ format: 1, name: "paybell-of-a-test", paybell: "1.0.0", schema: 94, postgres: "99.1", postgresMajor: 99 },
  ...{ startedAt: "2026-01-31T07:00:00.000Z", endedAt: "2026-01-31T07:05:00.000Z" },
  ...{ walArchived: true, walSegmentBytes: 16, timeline: 1, startLsn: "0/0" },
};

/** A backup of two files, which a program of PostgreSQL's finds right, and a folder for its restore. */
async function backedUp() {
  const [backup, programs, into] = [temporaryFolder(), temporaryFolder(), temporaryFolder()];
  await mkdir(join(backup, "data", "base"), { recursive: true });
  await writeFile(join(backup, "paybell-backup.json"), JSON.stringify(manifest));
  for (const name of ["PG_VERSION", "base/1"]) await writeFile(join(backup, "data", name), "99");
  const program = '#!/bin/sh\necho "pg_verifybackup (PostgreSQL) 99.1"';
  await writeFile(join(programs, "pg_verifybackup"), program, { mode: 0o755 });
  // Root gives the data to the owner of the folder.
  const owner = process.getuid?.() === 0 ? 65_534 : process.getuid?.();
  if (process.getuid?.() === 0) await chown(into, 65_534, 65_534);
  const { signal } = new AbortController();
  const env = { PATH: programs };
  const given = { backup, into, walFolder: undefined, to: undefined, env, nowMs: Date.UTC(2026, 1), signal };
  return { given, into, owner };
}

test("a restore is the data of its backup, for their owner alone, with its name", async () => {
  const { given, into, owner } = await backedUp();
  // The copy of a standby has it. PostgreSQL would wait for the primary, and never take a write.
  await writeFile(join(given.backup, "data", "standby.signal"), "");
  expect(await restoreBackup(given)).toMatchObject({ name: "2026-02-01T00:00:00.000Z", into, manifest });
  const files = ["PG_VERSION", "base", "base/1", "postgresql.auto.conf", "recovery.signal"];
  expect((await readdir(into, { recursive: true })).toSorted()).toEqual(files);
  expect(await readFile(join(into, "base/1"), "utf8")).toBe("99");
  expect(await readFile(join(into, "postgresql.auto.conf"), "utf8")).toContain("paybell.restored = '2026-02-01T");
  for (const name of ["", ...files]) expect((await stat(join(into, name))).uid, name).toBe(owner);
  expect((await stat(into)).mode & 0o777).toBe(0o700);
});

test("a restore writes over no data, and leaves them as they are", async () => {
  const { given, into } = await backedUp();
  await writeFile(join(into, "PG_VERSION"), "old");
  await expect(restoreBackup(given)).rejects.toThrow(`${into} is not empty.`);
  expect(await readdir(into)).toEqual(["PG_VERSION"]);
  expect(await readFile(join(into, "PG_VERSION"), "utf8")).toBe("old");
});

test("a restore that fails leaves nothing that could be started", async () => {
  const { given, into } = await backedUp();
  await mkdir(join(given.backup, "data", "recovery.signal"));
  await expect(restoreBackup(given)).rejects.toThrow("EISDIR");
  expect(await readdir(into)).toEqual([]);
});

test.each([
  ["without the archive", "2026-01-31T08:00:00Z", undefined, "is restored from the archive"],
  ["before the backup's end", "2026-01-31T07:04:59Z", "wal", "This backup ended at 2026-01-31T07:05:00.000Z"],
  ["at the backup's end", "2026-01-31T07:05:00Z", "wal", undefined],
  ["after the archive's end", "2126-01-31T07:05:00Z", "wal", "before 2126-01-31T07:05:00Z: PostgreSQL would not start"],
])("of a time %s: %s", async (_, to, wal, words) => {
  const { given, into } = await backedUp();
  const walFolder = wal === undefined ? undefined : temporaryFolder();
  if (walFolder !== undefined)
    await writeFile(join(walFolder, "0".repeat(7).concat("1", "0".repeat(16))), "x".repeat(16));
  const restored = restoreBackup({ ...given, to, walFolder });
  if (words === undefined) expect(await restored).toMatchObject({ into });
  else await expect(restored).rejects.toThrow(words);
});
