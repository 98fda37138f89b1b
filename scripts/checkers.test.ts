import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../test/support/temporary.ts";
import { checkTidiness, rules } from "./tidy.ts";

const repository = join(import.meta.dirname, "..");

/**
 * A repository of the same shape that is wrong on purpose, in a folder of its own, with these settings of the
 * repository. Its files are in one archive (the format txtar), so that no check of the repository has to leave them out.
 */
function fixture(name: string, ...settings: readonly string[]): string {
  const folder = temporaryFolder();
  const archive = readFileSync(join(import.meta.dirname, "fixtures", `${name}.txtar`), "utf8");
  for (const [, path = "", content = ""] of archive.matchAll(/^-- (\S+) --\n((?:(?!-- \S+ --$).*\n)*)/gm)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), content);
  }
  for (const path of settings) cpSync(join(repository, path), join(folder, path), { recursive: true });
  return folder;
}

/** Runs a tool of the repository's node_modules. */
function check(cwd: string, tool: string, ...args: readonly string[]) {
  const command = [join(repository, "node_modules", tool), ...args];
  return spawnSync(process.execPath, command, { cwd, encoding: "utf8", maxBuffer: 16 << 20 });
}

test("Biome refuses what the fixture does wrong, also where that shows only across files and by types", () => {
  const folder = fixture("biome", "biome.json", "scripts/grit");
  writeFileSync(join(folder, "src/long.ts"), "void 0;\n\n".repeat(501));
  writeFileSync(join(folder, "src/just.ts"), "void 0;\n\n".repeat(500));
  writeFileSync(join(folder, "src/just.test.ts"), "void 0;\n".repeat(501));

  const args = ["lint", "--vcs-enabled=false", "--reporter=json", "--max-diagnostics=none", "."];
  const { status, stdout } = check(folder, "@biomejs/biome/bin/biome", ...args);

  expect(status).toBe(1);
  const { diagnostics } = JSON.parse(stdout) as {
    diagnostics: { category: string; severity: string; location: { path: string; start: { line: number } } }[];
  };
  const places = Map.groupBy(
    diagnostics.filter(({ severity }) => severity === "error"),
    ({ category }) => category.replace(/^lint\/\w+\//, ""),
  );
  const placesOf = (rule: string) =>
    (places.get(rule) ?? []).map(({ location }) => `${location.path}:${location.start.line}`).sort();
  expect([...places.keys()].sort()).toEqual([
    "noConsole",
    "noExcessiveLinesPerFile",
    "noExplicitAny",
    "noFloatingPromises",
    "noFocusedTests",
    "noImportCycles",
    "noMisusedPromises",
    "noNonNullAssertion",
    "noRestrictedImports",
    "plugin",
    "useExhaustiveSwitchCases",
    "useThrowOnlyError",
  ]);
  const ledger = "packages/server/src/ledger";
  expect(placesOf("plugin")).toEqual([1, 2, 3].map((line) => `${ledger}/defaults.ts:${line}`));
  expect(places.get("noExcessiveLinesPerFile")?.map(({ location }) => location.path)).toEqual(["src/long.ts"]);
  expect(placesOf("noRestrictedImports")).toEqual([
    "packages/contract/src/index.ts:2",
    "packages/contract/src/index.ts:3",
    `${ledger}/run.ts:1`,
    `${ledger}/run.ts:2`,
  ]);
  expect(placesOf("noImportCycles")).toEqual([
    `${ledger}/entry.ts:1`,
    `${ledger}/types.ts:1`,
    "src/promises.ts:1",
    "src/send.ts:1",
  ]);
});

test("dependency-cruiser refuses exactly the imports of the fixture that say so", () => {
  const folder = fixture("imports");
  // Its packages find each other in node_modules.
  mkdirSync(join(folder, "node_modules/@paybell"), { recursive: true });
  for (const name of readdirSync(join(folder, "packages"))) {
    const exports = { ".": { "paybell-source": "./src/index.ts" } };
    const manifest = JSON.stringify({ name: `@paybell/${name}`, exports });
    writeFileSync(join(folder, "packages", name, "package.json"), manifest);
    symlinkSync(join("../../packages", name), join(folder, "node_modules/@paybell", name));
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ workspaces: ["packages/*"] }));
  const expected = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => path.startsWith("packages/") && path.endsWith(".ts"))
    .flatMap((path) => {
      const refused = readFileSync(join(folder, path), "utf8").matchAll(/ from "([^"]+)"; \/\/ refused$/gm);
      return [...refused].map(([, specifier = ""]) => `${path} → ${nameOf(specifier)}`);
    });

  const config = join(repository, ".dependency-cruiser.js");
  const args = ["--config", config, "--output-type", "json", "packages"];
  const { stdout } = check(folder, "dependency-cruiser/bin/dependency-cruiser.mjs", ...args);

  expect(expected.length).toBeGreaterThan(22);
  const { violations } = (JSON.parse(stdout) as { summary: { violations: { from: string; to: string }[] } }).summary;
  const refused = violations.map(({ from, to }) => `${from} → ${nameOf(to)}`);
  expect([...new Set(refused)].sort()).toEqual([...new Set(expected)].sort());
});

/** `ledger/run` of the path of a file, `server` of a package. */
function nameOf(path: string): string {
  const inPackage = /(?:^@paybell\/|packages\/)([\w-]+)(?:\/src\/index\.ts)?$/.exec(path)?.[1];
  return inPackage ?? path.replace(/^.*?src\/|^[./]*/, "").replace(/\.ts$/, "");
}

test("knip reports the fixture's unused file, export and type, and its dependencies", () => {
  const folder = fixture("knip", "knip.json");
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));

  const args = ["--reporter", "json", "--no-progress", "--no-config-hints"];
  const { status, stdout } = check(folder, "knip/bin/knip.js", ...args);

  expect(status).toBe(1);
  const { issues } = JSON.parse(stdout) as { issues: { file: string; [kind: string]: string | { name: string }[] }[] };
  const found = issues.flatMap(({ file, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, names]) =>
      typeof names === "string" ? [] : names.map(({ name }) => `${kind}: ${name} in ${file}`),
    ),
  );
  expect(found.sort()).toEqual([
    "dependencies: zod in packages/contract/package.json",
    "devDependencies: fast-check in package.json",
    "exports: unusedExport in packages/contract/src/used.ts",
    "files: packages/contract/src/unused.ts in packages/contract/src/unused.ts",
    "types: UnusedType in packages/contract/src/used.ts",
    "unlisted: pg in packages/contract/src/index.ts",
  ]);
});

test("markdownlint refuses the fixture's broken links and its style, and nothing else of it", () => {
  const folder = fixture("markdownlint", ".markdownlint-cli2.mjs");
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));

  const { status, stderr } = check(folder, "markdownlint-cli2/markdownlint-cli2-bin.mjs");

  expect(status).toBe(1);
  const found = [...stderr.matchAll(/^(\S+\.md):(\d+)\S* (?:error )?([\w-]+)/gm)];
  expect(found.map(([, file, line, rule]) => `${file}:${line} ${rule}`).sort()).toEqual([
    "README.md:17 MD001",
    "README.md:6 relative-links",
    "README.md:7 relative-links",
    "README.md:8 MD051",
    "README.md:9 relative-links",
  ]);
});

describe("the rules of style", () => {
  test("refuse exactly what the fixture does wrong, each at least once, and say what to do", () => {
    const { findings } = checkTidiness(fixture("tidy"));
    const server = "packages/server/src";

    expect(findings.map((finding) => /^.*?:\d+/.exec(finding)?.[0]).sort()).toEqual(
      [
        "CONTRIBUTING.md:5",
        "README.md:3",
        ...[13, 17, 23, 29, 35, 47, 53, 65].map((line) => `docs/blocks.md:${line}`),
        "docs/decisions/undated.md:1",
        ...[1, 2].map((line) => `${server}/slow.ts:${line}`),
        ...[3, 10].map((line) => `${server}/skipped.test.ts:${line}`),
        `${server}/utils:1`,
        ...[1, 3].map((line) => `${server}/words.ts:${line}`),
      ].sort(),
    );
    for (const rule of Object.keys(rules))
      expect(
        findings.some((finding) => finding.endsWith(`. ${rule}.`)),
        rule,
      ).toBe(true);
    expect(findings).toContain(
      "packages/server/src/utils:1: this folder's name says nothing. " +
        "A folder is a noun of the domain: name it for what it holds, or put each file where it is used.",
    );
  });

  test("fail what breaks one, and when they read nothing, and read this repository's own sources and settings", () => {
    const tidy = join(repository, "scripts/tidy.ts");
    const statusOf = (folder: string) => spawnSync(process.execPath, [tidy, folder]).status;
    const folder = temporaryFolder();
    expect(statusOf(folder)).toBe(1);
    for (const name of ["a.ts", "a.md", "a.yaml"]) writeFileSync(join(folder, name), "");
    expect(statusOf(folder)).toBe(0);
    expect(statusOf(fixture("tidy"))).toBe(1);

    expect(Math.min(...checkTidiness(repository).read)).toBeGreaterThan(5);
  });
});
