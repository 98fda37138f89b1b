import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

const repository = join(import.meta.dirname, "..");

test("refuses the fixture's broken links and its style, and nothing else of it", () => {
  const folder = mkdtempSync(join(tmpdir(), "paybell-markdownlint-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  cpSync(join(import.meta.dirname, "fixtures/markdownlint"), folder, { recursive: true });
  cpSync(join(repository, ".markdownlint-cli2.mjs"), join(folder, ".markdownlint-cli2.mjs"));
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"));
  const command = join(repository, "node_modules/markdownlint-cli2/markdownlint-cli2-bin.mjs");

  const { status, stderr } = spawnSync(process.execPath, [command], { cwd: folder, encoding: "utf8" });

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
