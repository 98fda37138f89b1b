import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { emitPackages } from "./emit.ts";
import { listPackages, type Package } from "./packages.ts";

const run = promisify(execFile);

export interface Packed {
  readonly package: Package;
  readonly tarball: string;
}

/**
 * Builds every package and packs it as it is published, with the licence, without touching the repository's own dist/.
 *
 * @param staging a folder for what goes into the packages
 * @param destination where the .tgz files go
 * @param emit compiles them; a test of what is around the code has none
 * @throws Error when the packages are not all of one version, or one names another version of a sibling
 */
export async function packPackages(
  root: string,
  { staging, destination }: { readonly staging: string; readonly destination: string },
  emit: typeof emitPackages = emitPackages,
): Promise<Packed[]> {
  const packages = listPackages(root);
  requireOneVersion(packages);
  const staged = ({ folder }: Package) => join(staging, folder);
  for (const one of packages) {
    mkdirSync(staged(one), { recursive: true });
    writeFileSync(join(staged(one), "package.json"), publishedManifest(one));
    for (const name of one.manifest.files.filter((file) => file !== "dist")) {
      const source = join(one.directory, name);
      if (existsSync(source)) cpSync(source, join(staged(one), name), { recursive: true });
    }
    cpSync(join(root, "LICENSE"), join(staged(one), "LICENSE"));
  }
  await emit(root, packages, staged);
  mkdirSync(destination, { recursive: true });
  const packed: Packed[] = [];
  for (const one of packages) {
    const args = ["pack", "--json", "--offline", "--ignore-scripts", "--pack-destination", destination];
    await run("npm", args, { cwd: staged(one) });
    const { name, version } = one.manifest;
    const tarball = join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`);
    packed.push({ package: one, tarball });
  }
  return packed;
}

/** Its package.json without the condition that only this repository uses: a package holds no sources. */
function publishedManifest({ manifest }: Package): string {
  const exports = Object.entries(manifest.exports).map(([name, target]) => [name, { default: target.default }]);
  return `${JSON.stringify({ ...manifest, exports: Object.fromEntries(exports) }, null, 2)}\n`;
}

/** They are released together: other combinations of versions are untested. */
export function requireOneVersion(packages: readonly Pick<Package, "manifest">[]): void {
  const versions = new Set(packages.map(({ manifest }) => manifest.version));
  const own = new Set(packages.map(({ manifest }) => manifest.name));
  for (const { manifest } of packages) {
    for (const [name, version] of Object.entries({ ...manifest.dependencies, ...manifest.peerDependencies })) {
      if (own.has(name)) versions.add(version);
    }
  }
  if (versions.size !== 1)
    throw new Error(`the packages name several versions of themselves: ${[...versions].join(", ")}`);
}
