import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { emitPackages } from "./build/emit.ts";
import { listPackages, type Package } from "./build/packages.ts";

const run = promisify(execFile);
const outputBytesMax = 64 * 1024 * 1024;

interface PackedFiles {
  readonly name: string;
  readonly version: string;
  readonly integrity: string;
  readonly files: readonly { readonly path: string; readonly size: number }[];
}

/**
 * Writes the contents of a build, into `dist/` of the repository: `sbom.cdx.json` (CycloneDX, everything that is
 * installed to run it) and `provenance.json` (commit, lock file, Node, and for each package the integrity and the
 * packed files: another build of the same commit gets the same).
 */
export async function writeSupply(root: string, packages: readonly Package[]): Promise<void> {
  const packed = JSON.parse(
    await npm(root, "pack", "--dry-run", "--json", ...workspacesOf(packages)),
  ) as readonly PackedFiles[];
  const commit = await run("git", ["rev-parse", "HEAD"], { cwd: root }).then(
    ({ stdout }) => stdout.trim(),
    () => null,
  );
  const lock = await readFile(join(root, "package-lock.json"));
  const provenance = {
    commit,
    node: process.version,
    lockFileSha256: createHash("sha256").update(lock).digest("hex"),
    packages: packed.map(({ name, version, integrity, files }) => ({
      name,
      version,
      integrity,
      files: files.map(({ path, size }) => ({ path, size })),
    })),
  };
  const folder = join(root, "dist");
  await mkdir(folder, { recursive: true });
  await writeFile(join(folder, "sbom.cdx.json"), await sbomOf(root, packages));
  await writeFile(join(folder, "provenance.json"), `${JSON.stringify(provenance, null, 2)}\n`);
}

/** Everything that is installed to run the packages, on whichever platform, as the lock file says (CycloneDX). */
export async function sbomOf(root: string, packages: readonly Package[]): Promise<string> {
  // By their workspaces, not by --omit dev: that leaves out what the repository's own tests need as well.
  return npm(root, "sbom", "--sbom-format", "cyclonedx", "--package-lock-only", ...workspacesOf(packages));
}

const workspacesOf = (packages: readonly Package[]) =>
  packages.flatMap(({ manifest }) => ["--workspace", manifest.name]);

async function npm(root: string, ...args: readonly string[]): Promise<string> {
  return (await run("npm", args, { cwd: root, maxBuffer: outputBytesMax })).stdout;
}

// `npm run build`: every package's dist/, from nothing.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const packages = listPackages(root);
  try {
    await emitPackages(root, packages, ({ directory }) => directory);
    await writeSupply(root, packages);
    for (const { manifest, folder } of packages) {
      process.stdout.write(`${manifest.name} ${manifest.version} → packages/${folder}/dist\n`);
    }
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
