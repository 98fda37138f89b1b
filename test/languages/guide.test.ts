import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { receiver } from "@paybell/partner";
import { afterAll, beforeAll, expect, test } from "vitest";
import { languages } from "./languages.ts";
import { run } from "./programs.ts";

const partner = join(import.meta.dirname, "../../docs/partner");
const guide = readFileSync(join(partner, "other-languages.md"), "utf8");
/** Compilers start cold and share two cores with everything else. */
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

function blocks(language: string): string[] {
  return [...guide.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, code = ""]) => code);
}

test("quotes the receivers as they are", () => {
  const source = readFileSync(join(partner, "receivers/python/receiver.py"), "utf8");
  expect(blocks("python").length).toBeGreaterThan(0);
  for (const excerpt of blocks("python")) expect(source).toContain(excerpt);
});

test("shows an agreement that a receiver takes, with the keys of the vectors", () => {
  const [text = ""] = blocks("json");
  const { vectors } = JSON.parse(readFileSync(join(partner, "vectors.json"), "utf8"));
  const agreed = JSON.parse(text);
  const names = ["cipher", "encoding", "signing", "encryptionKeys", "signingKeys", "webhookSecrets"];

  expect(Object.keys(agreed)).toEqual(names);
  expect(agreed).toEqual({
    ...Object.fromEntries(names.map((name) => [name, vectors[0][name]])),
    encryptionKeys: [{ ...vectors[0].encryptionKeys[0], id: "" }],
  });
  const { encryptionKeys, signingKeys, webhookSecrets, ...how } = agreed;
  const [signingKey, webhookSecret] = [signingKeys[0], webhookSecrets[0]];
  expect(() => receiver({ ...how, encryptionKey: encryptionKeys, signingKey, webhookSecret })).not.toThrow();
});

for (const { name, source, find } of languages) {
  test(`holds ${name} to the vectors by the command that it shows`, { timeout: timeoutMs }, async ({ skip }) => {
    const link = source.slice(partner.length + 1);
    const row = guide.split("\n").find((line) => line.startsWith(`| [${name}](${link})`));
    const command = row?.match(/`([^`]* --vectors [^`]*)`/)?.[1];
    if (command === undefined) throw new Error(`the guide shows no command for ${name}`);
    const runtime = await find();
    if ("missing" in runtime) return skip(`${name} was not run: ${runtime.missing}`);

    const folder = join(copy, dirname(link));
    runtime.adapt?.(folder);
    const [program = "", ...args] = command.split(" ");
    const { exitCode, stdout } = await run([program, ...args], { cwd: folder, timeoutMs });

    expect(stdout).toMatch(/^(?:ok .*\n)+$/);
    expect(exitCode).toBe(0);
  });
}
