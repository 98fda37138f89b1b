import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { generate, generators, outdated, write } from "./generate.ts";
import { generatedNotice } from "./sources/blocks.ts";
import { listTree } from "./sources/files.ts";

const root = join(import.meta.dirname, "..");
let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "paybell-generate-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

describe("generated files", () => {
  test("are committed as the code writes them", async () => {
    expect(outdated(root, await generate())).toEqual([]);
  });

  test("are the only documents that say so, and so are not held to their blocks otherwise", async () => {
    const { files } = listTree(root);
    const says = (path: string) => readFileSync(join(root, path), "utf8").includes(`\n${generatedNotice}`);
    const documents = files.filter((path) => path.endsWith(".md") && says(path)).sort();
    const made = (await generate()).map(({ path }) => path).filter((path) => path.endsWith(".md"));
    expect(documents).toEqual(made.sort());
  });

  test("are found when they are missing, and when they differ", async () => {
    const files = await generate();
    const paths = files.map(({ path }) => path);
    expect(paths).toHaveLength(generators.length);
    expect(outdated(folder, files)).toEqual(paths);
    write(folder, files);
    expect(outdated(folder, files)).toEqual([]);
    appendFileSync(join(folder, paths[1] ?? ""), "\n");
    expect(outdated(folder, files)).toEqual([paths[1]]);
  });

  test("pass the command that compares them", () => {
    const args = ["--conditions=paybell-source", join(root, "scripts/generate.ts"), "--check"];
    const { status, stdout } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stdout).toContain(`${generators.length} files are what the code writes`);
    expect(status).toBe(0);
  });
});
