import { mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
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

test.each([
  ["exit 0", ["paybell-19700101T000000Z"]],
  ["exit 1", []],
])("a backup has its name, and its manifest, once it is verified: %s", async (verified, left) => {
  const [programs, folder] = await Promise.all(["a", "b"].map((name) => mkdtemp(join(tmpdir(), `paybell-${name}-`))));
  if (programs === undefined || folder === undefined) throw new Error("no folders");
  onTestFinished(() =>
    Promise.all([programs, folder].map((one) => rm(one, { recursive: true }))).then(() => undefined),
  );
  const ranges = '{"WAL-Ranges":[{"Timeline":1,"Start-LSN":"0/1"},{"Timeline":2,"Start-LSN":"0/2"}]}';
  const script = (name: string, then: string) =>
    writeFile(
      join(programs, name),
      `#!/bin/sh\n[ "$1" = --version ] && echo "${name} (PostgreSQL) 99.1" && exit\n${then}\n`,
      { mode: 0o755 },
    );
  await script("pg_basebackup", `/bin/mkdir "$4" && echo '${ranges}' > "$4/backup_manifest"`);
  await script("pg_verifybackup", verified);
  let nowMs = -5_000;
  const source = async () => {
    nowMs += 5_000;
    return { ...server, nowMs, version: "99.1", major: 99, walArchived: false };
  };
  const place = { folder, url: "postgres://u@127.0.0.1:9/d", env: { PATH: programs }, version: "1.0.0" };
  await takeBackup({ ...place, source, signal: new AbortController().signal }).catch(() => undefined);
  expect(await readdir(folder)).toEqual(left);
  const [name] = left;
  if (name === undefined) return;
  expect(JSON.parse(await readFile(join(folder, name, "paybell-backup.json"), "utf8"))).toMatchObject({
    ...{ name, schema: 94, postgresMajor: 99, walArchived: false, walSegmentBytes: 16_777_216 },
    ...{ startedAt: "1970-01-01T00:00:00.000Z", endedAt: "1970-01-01T00:00:05.000Z", timeline: 2, startLsn: "0/2" },
  });
});
