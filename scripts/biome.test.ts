import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "..");

interface Diagnostic {
  readonly category: string;
  readonly severity: string;
  readonly location: { readonly path: string; readonly start: { readonly line: number } };
}

/** Lints the fixture by this repository's rules, in a folder of its own: the repository's rules leave fixtures out. */
function lintFixture(): {
  status: number | null;
  rules: Set<string>;
  longFiles: string[];
  imports: string[];
  cycles: string[];
  ours: string[];
} {
  const folder = mkdtempSync(join(tmpdir(), "paybell-biome-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(import.meta.dirname, "fixtures/biome"), folder, { recursive: true });
  writeFileSync(join(folder, "src/long.ts"), "void 0;\n\n".repeat(501));
  writeFileSync(join(folder, "src/just.ts"), "void 0;\n\n".repeat(500));
  writeFileSync(join(folder, "src/just.test.ts"), "void 0;\n".repeat(501));
  cpSync(join(repository, "biome.json"), join(folder, "biome.json"));
  cpSync(join(repository, "scripts/grit"), join(folder, "scripts/grit"), { recursive: true });
  const biome = join(repository, "node_modules/.bin/biome");
  const args = ["lint", "--vcs-enabled=false", "--reporter=json", "--max-diagnostics=none", "."];
  const { status, stdout } = spawnSync(biome, args, { cwd: folder, encoding: "utf8" });
  const { diagnostics } = JSON.parse(stdout) as { diagnostics: Diagnostic[] };
  const errors = diagnostics.filter(({ severity }) => severity === "error");
  const placesOf = (rule: string) =>
    errors
      .filter(({ category }) => category === rule)
      .map(({ location }) => `${location.path}:${location.start.line}`)
      .sort();
  return {
    status,
    rules: new Set(errors.map(({ category }) => category)),
    longFiles: errors.flatMap(({ category, location }) => (category.endsWith("LinesPerFile") ? [location.path] : [])),
    imports: placesOf("lint/style/noRestrictedImports"),
    cycles: placesOf("lint/suspicious/noImportCycles"),
    ours: placesOf("plugin"),
  };
}

test("refuses what the fixture does wrong, also where that shows only across files and by types", () => {
  const { status, rules, longFiles, imports, cycles, ours } = lintFixture();

  expect(status).toBe(1);
  expect([...rules].sort()).toEqual([
    "lint/nursery/noFloatingPromises",
    "lint/nursery/noMisusedPromises",
    "lint/nursery/useExhaustiveSwitchCases",
    "lint/style/noExcessiveLinesPerFile",
    "lint/style/noNonNullAssertion",
    "lint/style/noRestrictedImports",
    "lint/style/useThrowOnlyError",
    "lint/suspicious/noConsole",
    "lint/suspicious/noExplicitAny",
    "lint/suspicious/noFocusedTests",
    "lint/suspicious/noImportCycles",
    "plugin",
  ]);
  const defaults = "packages/server/src/ledger/defaults.ts";
  expect(ours).toEqual([`${defaults}:1`, `${defaults}:2`, `${defaults}:3`]);
  expect(longFiles).toEqual(["src/long.ts"]);
  expect(imports).toEqual([
    "packages/contract/src/index.ts:2",
    "packages/contract/src/index.ts:3",
    "packages/server/src/ledger/run.ts:1",
    "packages/server/src/ledger/run.ts:2",
  ]);
  expect(cycles).toEqual([
    "packages/server/src/ledger/entry.ts:1",
    "packages/server/src/ledger/types.ts:1",
    "src/promises.ts:1",
    "src/send.ts:1",
  ]);
});
