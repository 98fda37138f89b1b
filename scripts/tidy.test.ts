import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { type CheckReport, passes, describe as text } from "./sources/finding.ts";
import { checkTidiness, RULES } from "./tidy/check.ts";

const repository = join(import.meta.dirname, "..");

/** Made here: no lock file of the repository may name an address, not even one that is to be refused. */
const lockFile = JSON.stringify(
  {
    packages: {
      "node_modules/a": { resolved: "packages/a" },
      "node_modules/b": { resolved: "https://registry.example/b.tgz" },
    },
  },
  null,
  2,
);

/** The fixture in a folder of its own, with a lock file. */
function checkFixture(): CheckReport {
  const root = mkdtempSync(join(tmpdir(), "paybell-tidy-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  cpSync(join(import.meta.dirname, "fixtures/tidy"), root, { recursive: true });
  writeFileSync(join(root, "package-lock.json"), lockFile);
  return checkTidiness(root);
}

test("refuses exactly what the fixture does wrong, each rule at least once", () => {
  const report = checkFixture();
  const server = "packages/server/src";

  expect(report.findings.map(({ file, line }) => `${file}:${line}`).sort()).toEqual(
    [
      ".npmrc:3",
      ".npmrc:4",
      "CONTRIBUTING.md:5",
      "GUIDE.md:7",
      "README.md:12",
      "README.md:10",
      "README.md:16",
      "README.md:6",
      "README.md:7",
      ...[4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14].map((line) => `docs/phrases.md:${line}`),
      ...[13, 17, 23, 29, 35, 47, 53, 65].map((line) => `docs/blocks.md:${line}`),
      "docs/decisions/038-what-is-installed.md:1",
      "package-lock.json:7",
      "package.json:3",
      `${server}/broad.ts:1`,
      `${server}/broad.ts:12`,
      `${server}/full.ts:11`,
      ...[1, 5, 6, 13].map((line) => `${server}/phrases.ts:${line}`),
      ...[3, 4].map((line) => `${server}/phrases.test.ts:${line}`),
      ...[1, 2].map((line) => `${server}/slow.ts:${line}`),
      `${server}/skipped.test.ts:10`,
      `${server}/skipped.test.ts:3`,
      `${server}/utils:1`,
      `${server}/wide.ts:2`,
      `${server}/words.ts:1`,
      `${server}/words.ts:2`,
      `${server}/words.ts:3`,
      `${server}/words.ts:5`,
    ].sort(),
  );
  expect(new Set(report.findings.map(({ rule }) => rule))).toEqual(new Set(RULES.map(({ rule }) => rule)));
  expect(passes(report)).toBe(false);
});

test("says where, what is forbidden, by which rule, and what to do", () => {
  expect(text(checkFixture())).toContain(
    "packages/server/src/words.ts:2: a number stands behind `||`. " +
      "Rule: no `||` default on a number: it replaces 0 too. Use `??`.",
  );
});

test("fails when it read nothing", () => {
  const empty = mkdtempSync(join(tmpdir(), "paybell-tidy-"));
  onTestFinished(() => rmSync(empty, { recursive: true }));

  expect(passes(checkTidiness(empty))).toBe(false);
});

test("reads this repository's own sources and settings", () => {
  const { read } = checkTidiness(repository);

  expect(read["sources"]).toBeGreaterThan(10);
  expect(read["texts"]).toBeGreaterThan(5);
});
