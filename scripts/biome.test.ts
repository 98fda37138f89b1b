import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "..");

/** Lints the fixture by this repository's rules, in a folder of its own: the repository's rules leave fixtures out. */
function lintFixture(): { status: number | null; rules: Set<string> } {
  const folder = mkdtempSync(join(tmpdir(), "paybell-biome-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(import.meta.dirname, "fixtures/biome/src"), join(folder, "src"), { recursive: true });
  cpSync(join(repository, "biome.json"), join(folder, "biome.json"));
  const biome = join(repository, "node_modules/.bin/biome");
  const args = ["lint", "--vcs-enabled=false", "--reporter=json", "--max-diagnostics=none", "."];
  const { status, stdout } = spawnSync(biome, args, { cwd: folder, encoding: "utf8" });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: { category: string; severity: string }[] };
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  return { status, rules: new Set(errors.map(({ category }) => category)) };
}

test("refuses what the fixture does wrong, also where that shows only across files and by types", () => {
  const { status, rules } = lintFixture();

  expect(status).toBe(1);
  expect([...rules].sort()).toEqual([
    "lint/nursery/noFloatingPromises",
    "lint/nursery/noMisusedPromises",
    "lint/nursery/useExhaustiveSwitchCases",
    "lint/style/noNonNullAssertion",
    "lint/style/useThrowOnlyError",
    "lint/suspicious/noConsole",
    "lint/suspicious/noExplicitAny",
    "lint/suspicious/noImportCycles",
  ]);
});
