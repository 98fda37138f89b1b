import { execFile } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { temporaryFolder } from "../../../../test/support/temporary.ts";
import { recoverySettings } from "./restore.ts";

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
