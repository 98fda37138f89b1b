import { readFileSync } from "node:fs";
import { join } from "node:path";
import { receiver } from "@paybell/partner";
import { expect, test } from "vitest";
import { blocksOf } from "../../scripts/sources/blocks.ts";

const partner = join(import.meta.dirname, "../../docs/partner");

test("shows a file of keys that a receiver accepts, with the keys of the vectors", () => {
  const packages = readFileSync(join(partner, "packages.md"), "utf8");
  const text = blocksOf(packages).find(({ language }) => language === "json")?.text ?? "";
  const { vectors } = JSON.parse(readFileSync(join(partner, "vectors.json"), "utf8"));
  const { baseUrl: _, apiKey: __, ...shown } = JSON.parse(text);

  expect(() => receiver(shown)).not.toThrow();
  expect(shown.encryptionKey[0].key).toBe(vectors[0].encryptionKey[0].key);
  expect([shown.signingKey, shown.webhookSecret]).toEqual([vectors[0].signingKey, vectors[0].webhookSecret]);
});
