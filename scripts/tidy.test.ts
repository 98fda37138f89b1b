import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { checkTidiness, passes, rules, type TidyReport, describe as text } from "./tidy.ts";

const repository = join(import.meta.dirname, "..");

const checkFixture = (): TidyReport => checkTidiness(join(import.meta.dirname, "fixtures/tidy"));

test("refuses exactly what the fixture does wrong, each rule at least once", () => {
  const report = checkFixture();
  const server = "packages/server/src";

  expect(report.findings.map(({ file, line }) => `${file}:${line}`).sort()).toEqual(
    [
      "CONTRIBUTING.md:5",
      "README.md:3",
      ...[13, 17, 23, 29, 35, 47, 53, 65].map((line) => `docs/blocks.md:${line}`),
      "docs/decisions/undated.md:1",
      ...[1, 2].map((line) => `${server}/slow.ts:${line}`),
      `${server}/skipped.test.ts:10`,
      `${server}/skipped.test.ts:3`,
      `${server}/utils:1`,
      ...[1, 3].map((line) => `${server}/words.ts:${line}`),
    ].sort(),
  );
  expect(new Set(report.findings.map(({ rule }) => rule))).toEqual(new Set(rules.map(({ rule }) => rule)));
  expect(passes(report)).toBe(false);
});

test("says where, what is forbidden, by which rule, and what to do", () => {
  expect(text(checkFixture())).toContain(
    "packages/server/src/utils:1: this folder's name says nothing. " +
      "Rule: a folder is a noun of the domain. Name the folder for what it holds, or put each file where it is used.",
  );
});

test("fails when it read nothing", () => {
  const empty = mkdtempSync(join(tmpdir(), "paybell-tidy-"));
  onTestFinished(() => rmSync(empty, { recursive: true }));

  expect(passes(checkTidiness(empty))).toBe(false);
});

test("reads this repository's own sources and settings", () => {
  const { read } = checkTidiness(repository);

  expect(read.sources).toBeGreaterThan(10);
  expect(read.texts).toBeGreaterThan(5);
});
