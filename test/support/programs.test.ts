import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { tiers } from "../../scripts/tests/tiers.ts";
import { installations, needs, pathOf } from "./programs.ts";

test("the guide to the tests has the programs of each tier, and the line that installs them", () => {
  const guide = readFileSync(join(import.meta.dirname, "../../docs/internals/testing.md"), "utf8");
  const rows = installations().map(({ tier, programs, debian }) => {
    return `| \`${tier}\` | ${programs.join(", ")} | ${debian === "" ? "none" : `\`${debian}\``} |`;
  });
  const section = guide.slice(guide.indexOf("\n| tier | programs | Debian 12 |"));
  expect(section.slice(0, section.indexOf("\n\n")).split("\n").slice(3)).toEqual(rows);
  expect(tiers.map(({ name }) => name)).toEqual(expect.arrayContaining(installations().map(({ tier }) => tier)));
});

test("a test is skipped, and names the program, where it is missing, too old, or lacks a part", () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-programs-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  onTestFinished(() => void vi.unstubAllEnvs());
  const install = (name: string, script: string) =>
    writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  vi.stubEnv("PATH", folder);
  install("bun", "echo 1.3.1");
  install("go", "echo go version go1.22.9");
  install("python3", "exit 1");

  expect(needs("bun")).toEqual({ skip: false, meta: {} });
  expect(pathOf("bun")).toBe(join(folder, "bun"));
  const { skip, meta } = needs("bun", "go", "python", "deno");
  expect(skip).toBe(true);
  expect(meta.missing).toEqual([
    expect.stringMatching(/^Go 1.26 or newer: /),
    expect.stringMatching(/^Python 3.9 or newer with .*: apt-get install --no-install-recommends python3-crypto/),
    "Deno: npm install --global deno",
  ]);
  expect(() => pathOf("python")).toThrow("Python 3.9 or newer");
});
