import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { minifySync } from "rolldown/utils";
import { type Package, smallPackages } from "./packages.ts";

const run = promisify(execFile);

/**
 * Compiles `packages`, in their order, into `directoryOf(package)`/dist, which is emptied first. The code has no
 * comments; the types keep theirs, because editors show them.
 *
 * Each is compiled against the emitted types of those before it, as its users are, and not against their sources.
 * Rejects with the compiler's own words.
 */
export async function emitPackages(
  root: string,
  packages: readonly Package[],
  directoryOf: (one: Package) => string,
): Promise<void> {
  const paths: Record<string, string[]> = {};
  for (const one of packages) {
    const dist = join(directoryOf(one), "dist");
    rmSync(dist, { recursive: true, force: true });
    await compile(root, one, dist, paths);
    if (smallPackages.has(one.folder)) shorten(dist);
    copyOtherFiles(join(one.directory, "src"), dist);
    Object.assign(paths, typesOf(one, directoryOf(one)));
  }
}

async function compile(root: string, one: Package, outDir: string, paths: Record<string, string[]>): Promise<void> {
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  const directory = mkdtempSync(join(cache, `build-${one.folder}-`));
  const typeRoots = [join(root, "node_modules/@types")];
  const settings = {
    extends: join(one.directory, "tsconfig.build.json"),
    compilerOptions: { outDir, paths, typeRoots },
  };
  writeFileSync(join(directory, "tsconfig.json"), JSON.stringify(settings));
  const tsc = [join(root, "node_modules/typescript/bin/tsc"), "-p", directory];
  try {
    await run(process.execPath, [...tsc, "--emitDeclarationOnly"]);
    await run(process.execPath, [...tsc, "--declaration", "false", "--removeComments"]);
  } catch (error) {
    const words = error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
    throw new Error(`${one.manifest.name} does not compile:\n${words}`, { cause: error });
  } finally {
    rmSync(directory, { recursive: true });
  }
  if (!existsSync(join(outDir, "index.js"))) throw new Error(`${one.manifest.name}: the compiler wrote no index.js`);
}

/** File by file, so that what is not imported is not loaded, and exported names stay. */
function shorten(dist: string): void {
  const names = readdirSync(dist, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".js"));
  for (const name of names) {
    const path = join(dist, name);
    const { code, errors } = minifySync(name, readFileSync(path, "utf8"), {
      compress: true,
      mangle: true,
      codegen: { removeWhitespace: true },
    });
    if (errors.length > 0) throw new Error(`${path} cannot be shortened: ${errors.join(", ")}`);
    writeFileSync(path, code);
  }
}

/** What is read at run time and is no TypeScript: migrations, pages. */
function copyOtherFiles(source: string, dist: string): void {
  cpSync(source, dist, { recursive: true, filter: (path) => !/\.tsx?$|\/fixtures$/.test(path) });
}

/** Where the emitted types of each of a package's entries stand, by the name they are imported by. */
function typesOf(one: Package, directory: string): Record<string, string[]> {
  const found: Record<string, string[]> = {};
  for (const [subpath, target] of Object.entries(one.manifest.exports)) {
    const types = typeof target === "string" ? undefined : target["types"];
    if (types !== undefined) found[`${one.manifest.name}${subpath.slice(1)}`] = [join(directory, types)];
  }
  return found;
}
