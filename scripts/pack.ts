import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { promisify } from "node:util";
import { packClients } from "./build/clients.ts";
import { emitPackages } from "./build/emit.ts";
import { packExecutable } from "./build/executable.ts";
import { listPackages, type Package, type Packed } from "./build/packages.ts";

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
  // All by one process of npm, whose start takes as long as most packages.
  const args = ["pack", "--silent", "--offline", "--ignore-scripts", "--pack-destination", destination];
  await promisify(execFile)("npm", [...args, ...packages.map(staged)], { cwd: staging });
  return packages.map((one) => {
    const { name, version } = one.manifest;
    return { package: one, tarball: join(destination, `${name.replace("@", "").replace("/", "-")}-${version}.tgz`) };
  });
}

/** Its package.json without the condition that only this repository uses: a package holds no sources. */
function publishedManifest({ manifest }: Package): string {
  const exports = Object.entries(manifest.exports).map(([name, target]) => [name, target.default]);
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

// `npm run pack -- <folder>`: every package as a .tgz, as it is published, those in other languages as their ecosystems
// install them, and `paybell` as one executable file. Default: packed/.
if (import.meta.main) {
  const root = join(import.meta.dirname, "..");
  const destination = resolve(process.env["INIT_CWD"] ?? root, process.argv[2] ?? "packed");
  try {
    using folder = mkdtempDisposableSync(join(tmpdir(), "paybell-pack-"));
    const folders = { staging: folder.path, destination };
    const packed = await packPackages(root, folders);
    const executable = await packExecutable(root, packed, folders);
    for (const path of [...packed.map(({ tarball }) => tarball), executable]) {
      process.stdout.write(`${relative(process.env["INIT_CWD"] ?? root, path)}\n`);
    }
    for (const line of await packClients(root, destination)) process.stdout.write(`${line}\n`);
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
    process.exitCode = 1;
  }
}
