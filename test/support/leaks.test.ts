import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { beforeAll, describe, expect, inject, test } from "vitest";

interface FileResult {
  name: string;
  status: string;
  message: string;
}

const results = new Map<string, FileResult>();

beforeAll(async () => {
  const vitest = join(dirname(createRequire(import.meta.url).resolve("vitest/package.json")), "vitest.mjs");
  const folder = await mkdtemp(join(tmpdir(), "paybell-leaks-"));
  const output = join(folder, "report.json");
  const run = spawn(process.execPath, [vitest, "run", "--reporter=json", `--outputFile=${output}`], {
    cwd: join(import.meta.dirname, "leak-fixtures"),
    env: { PATH: process.env["PATH"] ?? "", LEAK_FIXTURE_DATABASE: inject("databaseServerUrl") },
    stdio: "ignore",
  });
  await once(run, "exit");
  const report: { testResults: FileResult[] } = JSON.parse(await readFile(output, "utf8"));
  await rm(folder, { recursive: true });
  for (const file of report.testResults) results.set(basename(file.name, ".fixture.ts"), file);
});

describe("a test file fails when it leaves open", () => {
  test.each([
    ["server", /TCP server 127\.0\.0\.1:\d+/],
    ["socket", /TCP socket 127\.0\.0\.1:\d+, opened at .*socket\.fixture\.ts/],
    ["timer", /timer, opened at .*timer\.fixture\.ts/],
    ["child", /child process, opened at .*child\.fixture\.ts/],
    ["postgres-client", /unix socket or pipe, opened at .*postgres-client\.fixture\.ts/],
  ])("a %s, and the message says which", (fixture, message) => {
    expect(results.get(fixture)).toMatchObject({ status: "failed", message: expect.stringMatching(message) });
  });
});

test.each(["clean", "cleared"])("a test file that closes everything passes: %s", (fixture) => {
  expect(results.get(fixture)).toMatchObject({ status: "passed" });
  expect(results.size).toBe(7);
});
