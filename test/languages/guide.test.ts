import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { receiver } from "@paybell/partner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blocksOf } from "../../scripts/sources/blocks.ts";
import { needs } from "../support/programs.ts";
import { languages } from "./languages.ts";
import { run } from "./programs.ts";

const partner = join(import.meta.dirname, "../../docs/partner");
const guide = readFileSync(join(partner, "other-languages.md"), "utf8");
/** A generous limit: compilers start cold, and share two cores with everything else. */
const timeoutMs = 240_000;

let copy: string;
beforeAll(() => {
  // Some of the commands leave something in their folder.
  copy = mkdtempSync(join(tmpdir(), "paybell-guide-"));
  cpSync(join(partner, "receivers"), join(copy, "receivers"), { recursive: true });
  cpSync(join(partner, "vectors.json"), join(copy, "vectors.json"));
});
afterAll(() => {
  rmSync(copy, { recursive: true, force: true });
});

test("shows a file of keys that a receiver accepts, with the keys of the vectors", () => {
  const packages = readFileSync(join(partner, "packages.md"), "utf8");
  const text = blocksOf(packages).find(({ language }) => language === "json")?.text ?? "";
  const { vectors } = JSON.parse(readFileSync(join(partner, "vectors.json"), "utf8"));
  const { baseUrl: _, apiKey: __, ...shown } = JSON.parse(text);

  expect(() => receiver(shown)).not.toThrow();
  expect(shown.encryptionKey[0].key).toBe(vectors[0].encryptionKeys[0].key);
  expect([shown.signingKey, shown.webhookSecret]).toEqual([
    [{ key: vectors[0].signingKeys[0] }],
    [{ key: vectors[0].webhookSecrets[0] }],
  ]);
});

for (const { name, needs: program, source } of languages) {
  const options = { timeout: timeoutMs, ...needs(program) };
  test(`holds ${name} to the vectors by the command that it shows`, options, async () => {
    const link = source.slice(partner.length + 1);
    const row = guide.split("\n").find((line) => line.startsWith(`| [${name}](${link})`));
    const command = row?.match(/`([^`]*vectors\.json)`/)?.[1];
    if (command === undefined) throw new Error(`the guide shows no command for ${name}`);

    const folder = join(copy, dirname(link));
    const { exitCode, stdout } = await run(["bash", "-c", command], { cwd: folder, timeoutMs });

    expect(stdout).toMatch(/^(?:ok .*\n)+$/);
    expect(exitCode).toBe(0);
  });
}
