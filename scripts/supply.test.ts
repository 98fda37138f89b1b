import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { verdictOf } from "./advisories.ts";
import { listPackages } from "./build/packages.ts";
import { writeSupply } from "./build/supply.ts";

const repository = join(import.meta.dirname, "..");

test("a build says what it consists of, and what is packed", { timeout: 120_000 }, async () => {
  const packages = listPackages(repository);
  await writeSupply(repository, packages);
  const read = (name: string) => JSON.parse(readFileSync(join(repository, "dist", name), "utf8"));
  const sbom = read("sbom.cdx.json");
  expect(sbom).toMatchObject({ bomFormat: "CycloneDX" });
  const names = sbom.components.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["fastify", "pg", "undici"]));
  expect(names).not.toContain("vitest");
  const provenance = read("provenance.json");
  expect(provenance.packages.map(({ name }: { name: string }) => name).sort()).toEqual(
    packages.map(({ manifest }) => manifest.name).sort(),
  );
  for (const { integrity, files } of provenance.packages) {
    expect(integrity).toMatch(/^sha512-/);
    expect(files.map(({ path }: { path: string }) => path)).toContain("package.json");
  }
});

test("no package's script runs when it is installed", () => {
  expect(readFileSync(join(repository, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
});

test.each([
  [{ metadata: { vulnerabilities: { low: 2, high: 0, critical: 0, total: 2 } } }, 0, "2 known, 0 of them"],
  [{ metadata: { vulnerabilities: { high: 1, critical: 1, total: 3 } } }, 1, "3 known, 2 of them"],
  [{ error: { summary: "404" } }, 0, "does not answer"],
])("an answer about advisories of %j ends with %i", (answer, exitCode, words) => {
  const verdict = verdictOf(JSON.stringify(answer));
  expect(verdict.exitCode).toBe(exitCode);
  expect(verdict.text).toContain(words);
  expect(verdictOf("<html>")).toMatchObject({ exitCode: 0 });
});
