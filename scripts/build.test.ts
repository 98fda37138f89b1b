import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { temporaryFolder } from "../test/support/temporary.ts";
import { bundleTypes, shortDeclaration } from "./build/emit.ts";

/** The published types of these entries, by file. */
async function typesOf(files: Readonly<Record<string, string>>, ...entries: string[]): Promise<Record<string, string>> {
  const directory = temporaryFolder();
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text);
  const types = await bundleTypes(
    directory,
    entries.map((name) => join(directory, name)),
  );
  return Object.fromEntries([...types].map(([path, text]) => [path.slice(directory.length + 1), text]));
}

describe("published types", () => {
  const failure = { "failure.d.ts": "export declare class Failure extends Error { code: string }" };

  test("contain what an entry exports and what that needs, and nothing else", async () => {
    const types = await typesOf(
      {
        "index.d.ts": 'export { open } from "./open.js";\n',
        "open.d.ts": `import type { Key, Unneeded } from "./key.js";
import type { Buffer } from "node:buffer";
interface Options { readonly key: Key; readonly at?: Date }
export declare function open(body: Buffer, options: Options): string;
export declare function internal(): Unneeded;`,
        "key.d.ts": "export type Key = string;\nexport interface Unneeded { a: 1 }",
      },
      "index.d.ts",
    );

    expect(Object.keys(types)).toEqual(["index.d.ts"]);
    expect(types["index.d.ts"]).toContain("function open(body:Buffer,options:Options):string");
    expect(types["index.d.ts"]).toContain("interface Options{readonly key:Key;readonly at?:Date}");
    expect(types["index.d.ts"]).not.toMatch(/Unneeded|internal/);
  });

  test("declare once what two entries export", async () => {
    const types = await typesOf(
      {
        ...failure,
        "index.d.ts": 'export { Failure } from "./failure.js";',
        "more.d.ts": 'export { Failure } from "./failure.js";\nexport { ask } from "./ask.js";',
        "ask.d.ts": 'import { Failure } from "./failure.js";\nexport declare function ask(): Failure;',
      },
      "index.d.ts",
      "more.d.ts",
    );

    expect(
      Object.values(types)
        .join("")
        .match(/class Failure/g),
    ).toHaveLength(1);
    expect(types["more.d.ts"]).toMatch(/import\{Failure\}from"\.\/[\w/]+\.js"/);
  });
});

describe("a shortened declaration", () => {
  test("keeps its documentation, in paragraphs, and neither private members nor the space between words", () => {
    const text = `/**
 * Opens it; "a  b" * c
 * goes on.
 *
 * A paragraph.
 * @throws Failure
 */
export declare class Opener {
    #private;
    private readonly secret;
    /** The id. */
    readonly id: \`a-\${string}\` | "x ; y";
    get name(): string;
}
export type Word =
/** One. */
 "one"
/** Two. */
 | "two";
import { A } from "./a.js";
`;

    expect(shortDeclaration(text)).toBe(`/** Opens it; "a  b" * c goes on.

A paragraph.
@throws Failure */export class Opener{
/** The id. */readonly id:\`a-\${string}\`|"x ; y";get name():string}export type Word=
/** One. */"one"
/** Two. */|"two";import{A}from"./a.js";`);
  });

  test("is refused where a comment within would be lost", () => {
    expect(() => shortDeclaration("export interface A { a: 1; // one\n b: 2 }")).toThrow("documents nothing");
  });
});
