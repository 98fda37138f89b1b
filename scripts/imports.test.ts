import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "..");
const fixture = join(import.meta.dirname, "fixtures/imports");

interface Cruise {
  readonly summary: {
    readonly violations: readonly { readonly from: string; readonly to: string }[];
  };
}

/** Cruises the fixture by this repository's layout. Its packages find each other in node_modules. */
function cruiseFixture(): Cruise {
  const folder = mkdtempSync(join(tmpdir(), "paybell-imports-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(fixture, folder, { recursive: true });
  mkdirSync(join(folder, "node_modules/@paybell"), { recursive: true });
  for (const name of readdirSync(join(folder, "packages"))) {
    const exports = { ".": { "paybell-source": "./src/index.ts" } };
    writeFileSync(
      join(folder, "packages", name, "package.json"),
      JSON.stringify({ name: `@paybell/${name}`, exports }),
    );
    symlinkSync(join("../../packages", name), join(folder, "node_modules/@paybell", name));
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify({ workspaces: ["packages/*"] }));
  const command = join(repository, "node_modules/dependency-cruiser/bin/dependency-cruiser.mjs");
  const config = join(repository, ".dependency-cruiser.js");
  const args = [command, "--config", config, "--output-type", "json", "packages"];
  const { stdout } = spawnSync(process.execPath, args, { cwd: folder, encoding: "utf8", maxBuffer: 16 << 20 });
  return JSON.parse(stdout) as Cruise;
}

test("refuses exactly the imports of the fixture that say so", () => {
  const expected = readdirSync(fixture, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .flatMap((entry) => {
      const path = join(entry.parentPath, entry.name);
      const lines = readFileSync(path, "utf8").split("\n");
      return lines.flatMap((line) => {
        const specifier = / from "([^"]+)"; \/\/ refused$/.exec(line)?.[1];
        return specifier === undefined ? [] : [`${path.slice(fixture.length + 1)} → ${nameOf(specifier)}`];
      });
    });

  const { summary } = cruiseFixture();

  expect(expected.length).toBeGreaterThan(22);
  const refused = summary.violations.map(({ from, to }) => `${from} → ${nameOf(to)}`);
  expect([...new Set(refused)].sort()).toEqual([...new Set(expected)].sort());
});

/** `ledger/run` of the path of a file, `server` of a package. */
function nameOf(path: string): string {
  const inPackage = /(?:^@paybell\/|packages\/)([\w-]+)(?:\/src\/index\.ts)?$/.exec(path)?.[1];
  return inPackage ?? path.replace(/^.*?src\/|^[./]*/, "").replace(/\.ts$/, "");
}
