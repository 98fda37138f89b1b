import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { takeBackup, withoutPassword } from "./take.ts";

test.each([
  ["postgres://u@db.example/d", "postgres://u@db.example/d", undefined],
  ["postgres://u:plain@db.example:5432/d?sslmode=require", "postgres://u@db.example:5432/d?sslmode=require", "plain"],
  ["postgres://u:S3cr%40t@db.example/d", "postgres://u@db.example/d", "S3cr@t"],
  ["postgres://u:S3cr@t9@db.example/d", "postgres://u@db.example/d", "S3cr@t9"],
  ["postgres://u:100%@db.example/d", "postgres://u@db.example/d", "100%"],
  ["postgres://u@db.example/d?password=Qs%20t&sslmode=require", "postgres://u@db.example/d?sslmode=require", "Qs t"],
  ["postgres://db.example/d?user=u&password=Qs", "postgres://db.example/d?user=u", "Qs"],
  ["postgres://u:p@db.example/d?application_name=a@b", "postgres://u@db.example/d?application_name=a@b", "p"],
])("the program that copies %s gets the password in its environment only", (url, target, password) => {
  expect(withoutPassword(url)).toEqual({ target, password });
});

const server = {
  ...{ nowMs: 0, version: "18.1", major: 18, schema: 94, walArchived: true, walSegmentBytes: 16_777_216 },
  ...{ tablespaces: [], isCluster: false },
};

test.each([
  ["No service was started on this database", { schema: 0 }],
  ["The server has tablespaces of its own: fast", { tablespaces: ["fast"] }],
  ["spread over several servers by Citus", { isCluster: true }],
])("a server of which a backup would not be whole is refused: %s", async (words, change) => {
  const source = async () => ({ ...server, ...change });
  const place = { folder: "/nowhere", url: "postgres://u@127.0.0.1:9/d", env: {}, version: "1.0.0" };
  await expect(takeBackup({ ...place, source, signal: AbortSignal.abort() })).rejects.toThrow(words);
});

test("the password of the URL counts, whatever the environment has", async () => {
  const folder = await mkdtemp(join(tmpdir(), "paybell-take-"));
  onTestFinished(() => rm(folder, { recursive: true }));
  const program = `#!/bin/sh
[ "$1" = --version ] && echo "pg_basebackup (PostgreSQL) 99.1" && exit
echo "$PGPASSWORD" >&2
exit 1`;
  await writeFile(join(folder, "pg_basebackup"), program, { mode: 0o755 });
  const env = { PATH: folder, PGPASSWORD: "another" };
  const place = { folder, url: "postgres://u:right@127.0.0.1:9/d", env, version: "1.0.0" };
  const source = async () => ({ ...server, version: "99.1", major: 99 });
  await expect(takeBackup({ ...place, source, signal: new AbortController().signal })).rejects.toThrow("failed: right");
});
