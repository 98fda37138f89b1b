import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { verdictOf } from "./advisories.ts";
import { listPackages } from "./build/packages.ts";
import { writeSupply } from "./build/supply.ts";

const repository = join(import.meta.dirname, "..");

test("a build lists its components and the packed files", async () => {
  const packages = listPackages(repository);
  await writeSupply(repository, packages);
  const read = (name: string) => JSON.parse(readFileSync(join(repository, "dist", name), "utf8"));
  const sbom = read("sbom.cdx.json");
  expect(sbom).toMatchObject({ bomFormat: "CycloneDX" });
  const names = sbom.components.map(({ name }: { name: string }) => name);
  expect(names).toEqual(expect.arrayContaining(["fastify", "pg", "undici"]));
  expect(names).not.toContain("vitest");
  const provenance = read("provenance.json");
  const lock = readFileSync(join(repository, "package-lock.json"));
  expect(provenance.lockFileSha256).toBe(createHash("sha256").update(lock).digest("hex"));
  const { stdout, status } = spawnSync("git", ["rev-parse", "HEAD"], { cwd: repository, encoding: "utf8" });
  expect(provenance.commit).toBe(status === 0 ? stdout.trim() : null);
  expect(provenance.packages.map(({ name }: { name: string }) => name).sort()).toEqual(
    packages.map(({ manifest }) => manifest.name).sort(),
  );
  for (const { integrity, files } of provenance.packages) {
    expect(integrity).toMatch(/^sha512-/);
    const paths = files.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(expect.arrayContaining(["package.json", "README.md"]));
  }
});

test("no package's script runs when it is installed", () => {
  expect(readFileSync(join(repository, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
});

const folders = [
  ...listPackages(repository).map(({ folder }) => `packages/${folder}`),
  "packages/console",
  "bench/peers",
];
const manifests = ["package.json", ...folders.map((folder) => `${folder}/package.json`)];

test.each(manifests)("every dependency in %s has an exact version", (path) => {
  const manifest = JSON.parse(readFileSync(join(repository, path), "utf8"));
  const versions = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
  for (const [name, version] of Object.entries(versions)) expect(version, name).toMatch(/^\d+\.\d+\.\d+[\w.-]*$/);
});

test("every package in the lock file has an integrity hash, and comes from a registry", () => {
  const { packages } = JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8"));
  const installed = Object.entries<{ link?: boolean; integrity?: string; resolved?: string }>(packages).filter(
    ([path, { link }]) => path.includes("node_modules/") && link !== true,
  );
  expect(installed.length).toBeGreaterThan(100);
  for (const [path, { integrity, resolved }] of installed) {
    expect(integrity, path).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/);
    expect(resolved, path).toBeUndefined();
  }
});

test.each([
  [{ metadata: { vulnerabilities: { low: 2, high: 0, critical: 0, total: 2 } } }, 0, "2 known, 0 of them"],
  [{ metadata: { vulnerabilities: { high: 1, critical: 1, total: 3 } } }, 1, "3 known, 2 of them"],
  [{ error: { summary: "404" } }, 2, "does not answer"],
])("an answer about advisories of %j ends with %i", (answer, exitCode, words) => {
  const verdict = verdictOf(JSON.stringify(answer));
  expect(verdict.exitCode).toBe(exitCode);
  expect(verdict.text).toContain(words);
  for (const output of ["<html>", "", "{}"]) expect(verdictOf(output)).toMatchObject({ exitCode: 2 });
});
