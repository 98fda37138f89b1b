import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { rollTypes } from "./build/types/roll.ts";

const directory = mkdtempSync(join(tmpdir(), "paybell-types-"));
const files = new Map<string, string>();

beforeEach(() => {
  files.clear();
});

afterAll(() => {
  rmSync(directory, { recursive: true });
});

function roll(...entries: string[]): string[] {
  for (const [name, text] of files) writeFileSync(join(directory, name), text);
  const rolled = rollTypes(entries.map((name) => join(directory, name)));
  return [...rolled.values()];
}

describe("rolled types", () => {
  test("hold what an entry exports and what that needs, and nothing else", () => {
    files.set("index.d.ts", 'export { open } from "./open.ts";\n');
    files.set(
      "open.d.ts",
      `import type { Key, Unneeded } from "./key.ts";
import type { Buffer } from "node:buffer";
interface Options { readonly key: Key; readonly at?: Date }
export declare function open(body: Buffer, options: Options): string;
export declare function internal(): Unneeded;`,
    );
    files.set("key.d.ts", "export type Key = string;\nexport interface Unneeded { a: 1 }");

    expect(roll("index.d.ts")).toEqual([
      `import type{Buffer}from"node:buffer";
export function open(body:Buffer,options:Options):string;
interface Options{readonly key:Key;readonly at?:Date}
type Key=string;
export{};
`,
    ]);
  });

  test("stand in the first entry that exports them", () => {
    files.set("index.d.ts", 'export { Failure } from "./failure.ts";');
    files.set("more.d.ts", 'export { Failure } from "./failure.ts";\nexport { ask } from "./ask.ts";');
    files.set("failure.d.ts", "export declare class Failure extends Error { code: string }");
    files.set(
      "ask.d.ts",
      `import { Failure } from "./failure.ts";
export declare function ask(): Failure;
export declare function ask(id: string): Failure;`,
    );

    expect(roll("index.d.ts", "more.d.ts")).toEqual([
      "export class Failure extends Error{code:string}\nexport{};\n",
      `import type{Failure}from"./index.js";
export function ask():Failure;
export function ask(id:string):Failure;
export{Failure}from"./index.js";
`,
    ]);
  });

  test("keep the documentation, in paragraphs, and neither private members nor the space between words", () => {
    files.set(
      "index.d.ts",
      `/**
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
`,
    );

    expect(roll("index.d.ts")).toEqual([
      `/** Opens it; "a  b" * c goes on.

A paragraph.
@throws Failure */export class Opener{
/** The id. */readonly id:\`a-\${string}\`|"x ; y";get name():string}
export type Word=
/** One. */"one"
/** Two. */|"two";
export{};
`,
    ]);
  });

  test("declare no value that is exported as a type alone", () => {
    files.set("index.d.ts", 'export type * from "./table.ts";');
    files.set("table.d.ts", "export declare const table: Row[];\nexport type Row = { a: string };");

    expect(roll("index.d.ts")).toEqual(["export type Row={a:string};\nexport{};\n"]);
  });

  test.each([
    ["an import() type", 'export type A = import("./b.ts").B;', "import()"],
    ["another name", "interface A {}\nexport type { A as B };", "exported as B"],
    ["a class exported as a type", "declare class A {}\nexport type { A };", "is a value"],
    ["a name from nowhere", "export { A };", "neither declared nor imported"],
    ["a directive", '/// <reference types="node" />\nexport type A = 1;', "directive"],
    ["a comment within", "export interface A { a: 1; // one\n b: 2 }", "documents nothing"],
    ["several variables in one", "export declare const a: 1, b: 2;", "no declaration"],
  ])("are refused rather than wrong: %s", (_what, text, words) => {
    files.set("index.d.ts", text);
    expect(() => roll("index.d.ts")).toThrow(words);
  });

  test("are refused where two entries need what none exports, and where one name is two things", () => {
    files.set("one.d.ts", 'import type { Shared } from "./shared.ts";\nexport type One = Shared;');
    files.set("two.d.ts", 'import type { Shared } from "./shared.ts";\nexport type Two = Shared;');
    files.set("shared.d.ts", "export interface Shared {}");
    expect(() => roll("one.d.ts", "two.d.ts")).toThrow("let one export it");

    files.set("other.d.ts", "interface Shared {}\nexport type Other = Shared;");
    files.set("index.d.ts", 'export { One } from "./one.ts";\nexport { Other } from "./other.ts";');
    expect(() => roll("index.d.ts")).toThrow("two things");
  });
});
