import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";

const root = join(import.meta.dirname, "../../..");
const guides = ["deduplicate", "reconcile", "catch-up", "client", "testing"];
const run = promisify(execFile);

/** Fences of JavaScript that test/examples.test.ts does not run, because they need what a machine may not have. */
async function shown(): Promise<string[]> {
  const texts = await Promise.all(guides.map((guide) => readFile(join(root, `docs/partner/${guide}.md`), "utf8")));
  return texts.flatMap((text) =>
    [...text.matchAll(/(<!-- run -->\n\n)?```js\n(.*?)```/gs)].flatMap(([, mark, code = ""]) => (mark ? [] : [code])),
  );
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(import.meta.dirname, ".documents-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function compile(examples: readonly string[]): Promise<string> {
  await Promise.all(examples.map((code, index) => writeFile(join(folder, `${index}.js`), code)));
  const compilerOptions = { allowJs: true, checkJs: true, noEmit: true, incremental: false, rootDir: root };
  const settings = { extends: join(root, "tsconfig.base.json"), compilerOptions, include: ["*.js"] };
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify(settings));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  return await run(process.execPath, [tsc, "-p", folder]).then(
    () => "",
    ({ stdout }: { stdout: string }) => stdout,
  );
}

it("the examples that are not run compile against the library", async () => {
  const examples = await shown();
  expect(examples.length).toBeGreaterThan(0);
  expect(await compile(examples)).toBe("");
});

it("what does not compile is found", async () => {
  const wrong = 'import { redisStore } from "@paybell/partner/redis";\nredisStore(1);\n';
  expect(await compile([wrong])).toContain("0.js(2,12): error");
});
