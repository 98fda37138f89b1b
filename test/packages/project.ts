import { execFile } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { parseSync } from "rolldown/utils";
import { inject } from "vitest";
import { listPackages, type Package } from "../../scripts/build/packages.ts";
import { withAdmin } from "../support/database.ts";

export const repository = join(import.meta.dirname, "../..");
export const run = promisify(execFile);

export interface Packed {
  readonly package: Package;
  readonly tarball: string;
  /** The paths inside the tarball. */
  readonly files: readonly string[];
}

/** An arbitrary number: test files that need the packages take turns. */
const packLock = 7_420_003;

/**
 * The packages as `npm run pack` makes them, once for each run.
 *
 * @returns the run's folder, with each package unpacked below its name
 */
export async function packAll(): Promise<{ readonly directory: string; readonly packed: Packed[] }> {
  const directory = join(inject("runFolder"), "packed");
  const list = join(directory, "list.json");
  await withAdmin(inject("databaseServerUrl"), async (client) => {
    await client.query("SELECT pg_advisory_lock($1)", [packLock]);
    if (existsSync(list)) return;
    const { stdout } = await run(process.execPath, ["scripts/pack.ts", directory], {
      cwd: repository,
      env: { ...process.env, INIT_CWD: repository, PATH: packers(directory) },
    });
    writeFileSync(join(directory, "output"), stdout);
    const tarballs = stdout.split("\n");
    const packed = listPackages(repository).map((one, at) => ({
      package: one,
      tarball: join(repository, tarballs[at] ?? ""),
    }));
    for (const one of packed) await unpack(one.tarball, join(directory, one.package.folder));
    writeFileSync(list, JSON.stringify(await Promise.all(packed.map(withFiles))));
  });
  return { directory, packed: JSON.parse(readFileSync(list, "utf8")) as Packed[] };
}

/**
 * A PATH with what packs our packages, and a Go that notes its arguments: test/languages packs those of other languages.
 */
function packers(directory: string): string {
  const folder = join(directory, "programs");
  mkdirSync(folder, { recursive: true });
  const paths = (process.env["PATH"] ?? "").split(delimiter).map((path) => join(path, "npm"));
  symlinkSync(process.execPath, join(folder, "node"));
  symlinkSync(paths.find((path) => existsSync(path)) ?? "npm", join(folder, "npm"));
  writeFileSync(join(folder, "go"), `#!/bin/sh\necho "$@" >> "${folder}/go-arguments"\n`, { mode: 0o755 });
  return folder;
}

async function unpack(tarball: string, folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  await run("tar", ["-xzf", tarball, "-C", folder, "--strip-components=1"]);
}

async function withFiles<One extends { readonly tarball: string }>(one: One): Promise<One & Pick<Packed, "files">> {
  const { stdout } = await run("tar", ["-tzf", one.tarball]);
  const paths = stdout.trim().split("\n");
  return { ...one, files: paths.map((path) => path.replace(/^package\//, "")) };
}

/**
 * An empty project with the packed packages installed, outside of the repository. Contract and partner are installed by
 * `npm install`, from their tarballs only and without a network. The others have dependencies, which are links into the
 * repository's own node_modules in place of a download.
 */
export async function installAll(packed: readonly Packed[]): Promise<string> {
  const project = mkdtempSync(join(tmpdir(), "paybell-consumer-"));
  writeFileSync(join(project, "package.json"), JSON.stringify({ name: "consumer", private: true, type: "commonjs" }));
  const [alone, withDependencies] = [packed.filter(standsAlone), packed.filter((one) => !standsAlone(one))];
  const args = ["install", "--offline", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"];
  await run("npm", [...args, ...alone.map(({ tarball }) => tarball)], { cwd: project });
  const modules = join(project, "node_modules");
  for (const one of withDependencies) {
    await unpack(one.tarball, join(modules, one.package.manifest.name));
  }
  if (withDependencies.length > 0) linkOthers(modules);
  return project;
}

/** Every package that the emitted code of `one` imports, Node's own modules left out. */
export function importedPackages(directory: string, one: Packed): Set<string> {
  // Browsers load the scripts of the guides, whose modules are all in them.
  const files = one.files.filter((path) => /^dist\/(?!guides\/).*\.js$/.test(path));
  const specifiers = files.flatMap((path) => importedBy(join(directory, one.package.folder, path)));
  const others = specifiers.filter((specifier) => !specifier.startsWith(".") && !isBuiltin(specifier));
  return new Set(others.map((specifier) => specifier.split("/", specifier.startsWith("@") ? 2 : 1).join("/")));
}

function importedBy(path: string): readonly string[] {
  const text = readFileSync(path, "utf8");
  const { errors, module } = parseSync(path, text);
  if (errors[0] !== undefined) throw new Error(`${path}: ${errors[0].message}`);
  const dynamic = module.dynamicImports.map(({ moduleRequest: { start, end } }) => text.slice(start, end));
  return [
    ...module.staticImports.map(({ moduleRequest }) => moduleRequest.value),
    ...module.staticExports.flatMap(({ entries }) => entries.map(({ moduleRequest }) => moduleRequest?.value)),
    ...dynamic.map((source) => /^["'`]([^$]*)["'`]$/.exec(source)?.[1]),
  ].filter((specifier) => specifier !== undefined);
}

function standsAlone(one: Packed): boolean {
  return Object.keys(one.package.manifest.dependencies ?? {}).every((name) => name.startsWith("@paybell/"));
}

function linkOthers(modules: string): void {
  const installed = join(repository, "node_modules");
  for (const name of readdirSync(installed)) {
    if (name.startsWith(".") || name === "paybell" || name === "@paybell" || existsSync(join(modules, name))) continue;
    symlinkSync(join(installed, name), join(modules, name));
  }
}
