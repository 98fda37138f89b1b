import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** Each package after those it needs. */
const ORDER = ["contract", "partner", "server", "cli"] as const;

export interface Package {
  /** The folder's name below packages/. */
  readonly folder: string;
  readonly directory: string;
  readonly manifest: Manifest;
}

/** The packages that a partner installs: code and types are written without text for authors only. */
export const smallPackages: ReadonlySet<string> = new Set(["contract", "partner"]);

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly files: readonly string[];
  readonly bin?: Readonly<Record<string, string>>;
  readonly exports: Readonly<Record<string, { readonly default: string }>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
}

/** The packages that have an entry, each after those it needs. */
export function listPackages(root: string): Package[] {
  return ORDER.map((folder) => ({ folder, directory: join(root, "packages", folder) }))
    .filter(({ directory }) => existsSync(join(directory, "src/index.ts")))
    .map((one) => ({ ...one, manifest: readManifest(one.directory) }));
}

/** The code of each of its entries, relative to the package's folder; the types are next to it. */
export function entryPaths({ exports }: Manifest): string[] {
  return Object.values(exports).map((target) => target.default);
}

function readManifest(directory: string): Manifest {
  return JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Manifest;
}

export interface Packed {
  readonly package: Package;
  readonly tarball: string;
}
