import { appendFileSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { temporaryFolder } from "../test/support/temporary.ts";
import { withParts } from "./generate/document.ts";
import { generate, generators, outdated, write } from "./generate.ts";
import { generatedPart } from "./sources/blocks.ts";
import { listTree } from "./sources/files.ts";

const root = join(import.meta.dirname, "..");
let folder: string;

// Takes seconds, and what the code writes does not change meanwhile.
const files = await generate();
beforeEach(() => {
  folder = temporaryFolder();
});

describe("generated files", () => {
  // `npm test` compares the repository's own as a static check, by the command.
  test("are the only documents with generated parts, because the blocks of these are not checked", () => {
    const says = (path: string) => readFileSync(join(root, path), "utf8").search(generatedPart) !== -1;
    const documents = listTree(root)
      .files.filter((path) => path.endsWith(".md") && says(path))
      .sort();
    const made = files.map(({ path }) => path).filter((path) => path.endsWith(".md"));
    expect(documents).toEqual(made.sort());
  });

  test("have a place for each part, and no other place", () => {
    const path = "docs/reference/errors.md";
    expect(() => withParts(path, { errors: "", operators: "", others: "" })).toThrow("no place for its part others");
    expect(() => withParts(path, { errors: "" })).toThrow("a part operators, which nothing generates");
  });

  test("are found when they are missing, and when they differ", () => {
    const paths = files.map(({ path }) => path);
    expect(paths.length).toBeGreaterThanOrEqual(generators.length);
    expect(new Set(paths).size).toBe(paths.length);
    expect(outdated(folder, files)).toEqual(paths);
    write(folder, files);
    expect(outdated(folder, files)).toEqual([]);
    appendFileSync(join(folder, paths[1] ?? ""), "\n");
    expect(outdated(folder, files)).toEqual([paths[1]]);
  });
});
