import { createHash } from "node:crypto";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { packPackages } from "./build/pack.ts";
import { listPackages } from "./build/packages.ts";
import { sbomOf } from "./build/supply.ts";

/** Makes the packages of a tree again, into a folder. */
export type Repack = (root: string, folder: string) => Promise<unknown>;

/**
 * Compares a release with the commit that is checked out here: each file with its checksum, each package with
 * the same package built again, and the SBOM with the lock file.
 *
 * @returns a sentence for each difference; empty: it comes from this commit
 */
export async function differencesOf(root: string, release: string, repack: Repack = packAgain): Promise<string[]> {
  const names = readdirSync(release).filter((name) => name !== "SHA256SUMS");
  const sums = new Map(
    readFileSync(join(release, "SHA256SUMS"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => [line.slice(66), line.slice(0, 64)] as const),
  );
  const problems = [...sums.keys()].filter((name) => !names.includes(name)).map((name) => `${name} is missing`);
  for (const name of names) {
    if (sums.get(name) !== sha256(join(release, name))) problems.push(`${name} is not what SHA256SUMS says`);
  }
  const folder = mkdtempSync(join(tmpdir(), "paybell-verify-"));
  try {
    await repack(root, folder);
    const built = readdirSync(folder).filter((name) => name.endsWith(".tgz"));
    const released = names.filter((name) => name.endsWith(".tgz"));
    for (const name of new Set([...built, ...released])) {
      const isSame =
        built.includes(name) && released.includes(name) && isEqual(join(folder, name), join(release, name));
      if (!isSame) problems.push(`${name} is not the package of this commit`);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const [sbom, own] = [readFileSync(join(release, "sbom.cdx.json"), "utf8"), await sbomOf(root, listPackages(root))];
  if (componentsOf(sbom) !== componentsOf(own)) problems.push("sbom.cdx.json does not list what the lock file has");
  return problems;
}

async function packAgain(root: string, destination: string): Promise<unknown> {
  const staging = mkdtempSync(join(tmpdir(), "paybell-verify-"));
  try {
    return await packPackages(root, { staging, destination });
  } finally {
    rmSync(staging, { recursive: true, force: true });
  }
}

function isEqual(one: string, other: string): boolean {
  return sha256(one) === sha256(other);
}

function sha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** Without the time and the random number of the document. */
function componentsOf(sbom: string): string {
  const { components, dependencies } = JSON.parse(sbom) as { components: unknown; dependencies: unknown };
  return JSON.stringify([components, dependencies]);
}

// `npm run release:verify -- <folder>`, in a checkout of the release's tag.
if (import.meta.main) {
  const [folder] = process.argv.slice(2);
  if (folder === undefined) throw new Error("Name the folder of the release: npm run release:verify -- <folder>");
  const problems = await differencesOf(join(import.meta.dirname, ".."), folder);
  for (const problem of problems) process.stdout.write(`${problem}\n`);
  if (problems.length === 0)
    process.stdout.write(`${folder} is what this commit gives: packages, SBOM and checksums.\n`);
  process.exitCode = problems.length === 0 ? 0 : 1;
}
