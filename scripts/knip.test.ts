import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "..");

interface Issues {
  readonly file: string;
  readonly [kind: string]: readonly { readonly name: string }[] | string;
}

/** Runs knip by this repository's own settings over a repository of the same shape that is wrong on purpose. */
function searchFixture(): { status: number | null; found: string[] } {
  const root = mkdtempSync(join(tmpdir(), "paybell-knip-"));
  onTestFinished(() => rmSync(root, { recursive: true }));
  cpSync(join(import.meta.dirname, "fixtures/knip"), root, { recursive: true });
  cpSync(join(repository, "knip.json"), join(root, "knip.json"));
  symlinkSync(join(repository, "node_modules"), join(root, "node_modules"));
  const knip = join(repository, "node_modules/knip/bin/knip.js");
  const args = [knip, "--reporter", "json", "--no-progress", "--no-config-hints"];
  const { status, stdout } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
  const { issues } = JSON.parse(stdout) as { issues: Issues[] };
  const found = issues.flatMap(({ file, ...kinds }) =>
    Object.entries(kinds).flatMap(([kind, names]) =>
      typeof names === "string" ? [] : names.map(({ name }) => `${kind}: ${name} in ${file}`),
    ),
  );
  return { status, found: found.sort() };
}

test("sees TypeScript sources: reports the fixture's unused file, export and type, and its dependencies", () => {
  const { status, found } = searchFixture();

  expect(status).toBe(1);
  expect(found).toEqual([
    "dependencies: zod in packages/contract/package.json",
    "devDependencies: fast-check in package.json",
    "exports: unusedExport in packages/contract/src/used.ts",
    "files: packages/contract/src/unused.ts in packages/contract/src/unused.ts",
    "types: UnusedType in packages/contract/src/used.ts",
    "unlisted: pg in packages/contract/src/index.ts",
  ]);
});
