import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { receiver } from "@paybell/partner";
import { fetchHandler } from "@paybell/partner/fetch";
import { sampleIpn, sampleKeys } from "@paybell/partner/testing";
import { afterAll, beforeAll, expect, it } from "vitest";
import { blocksOf } from "../../../scripts/sources/blocks.ts";
import { readDocuments } from "../../../test/support/documents.ts";

const root = join(import.meta.dirname, "../../..");
const run = promisify(execFile);

/** Compiles the examples that test/examples.test.ts does not run, because a machine may lack what they need. */
async function compiled(): Promise<string[]> {
  const documents = await readDocuments(root);
  const blocks = documents.flatMap(({ text }) => blocksOf(text));
  return blocks.filter(({ mark }) => mark === "compiled").map(({ text }) => text);
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

it("the examples that are not run compile against the library, and one that does not is found", async () => {
  const examples = await compiled();
  expect(examples.length).toBeGreaterThan(0);
  const wrong = 'import { redisStore } from "@paybell/partner/redis";\nredisStore(1);\n';
  const found = await compile([...examples, wrong]);
  expect(found.match(/^\S.*: error/gm), found).toEqual([
    expect.stringMatching(`${examples.length}.js\\(2,12\\): error$`),
  ]);
});

it("docs/partner/headers.md shows the line that the log has for an IPN with a wrong signature", async () => {
  const lines: string[] = [];
  const keys = { ...sampleKeys, signingKey: randomBytes(32).toString("base64") };
  const callback = fetchHandler(receiver(keys), () => undefined, { log: (line) => lines.push(line) });
  const { body, headers } = sampleIpn();
  await callback(new Request("https://shop.example/ipn", { method: "POST", body, headers }));
  const blocks = blocksOf(await readFile(join(root, "docs/partner/headers.md"), "utf8"));
  const shown = blocks.find(({ text }) => text.startsWith("IPN refused (signature)"))?.text.replaceAll("\n", " ");
  expect(lines).toEqual([shown]);
});
