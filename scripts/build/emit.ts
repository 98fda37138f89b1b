import { execFile } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempDisposableSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { promisify } from "node:util";
import { type OutputOptions, type Plugin, rolldown } from "rolldown";
import { dts } from "rolldown-plugin-dts";
import { compilerEnv } from "./compiler.ts";
import { entryPaths, type Package, smallPackages } from "./packages.ts";

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
    if (smallPackages.has(one.folder)) await shorten(one, dist);
    copyOtherFiles(join(one.directory, "src"), dist);
    if (one.folder === "server") copyPages(root, dist);
    Object.assign(paths, typesOf(one, directoryOf(one)));
  }
}

async function compile(root: string, one: Package, outDir: string, paths: Record<string, string[]>): Promise<void> {
  const cache = join(root, "node_modules/.cache");
  mkdirSync(cache, { recursive: true });
  using directory = mkdtempDisposableSync(join(cache, `build-${one.folder}-`));
  const typeRoots = [join(root, "node_modules/@types")];
  const settings = {
    extends: join(one.directory, "tsconfig.build.json"),
    compilerOptions: { outDir, paths, typeRoots },
  };
  writeFileSync(join(directory.path, "tsconfig.json"), JSON.stringify(settings));
  const tsc = [join(root, "node_modules/typescript/bin/tsc"), "-p", directory.path];
  const how = { env: { ...process.env, ...compilerEnv } };
  try {
    // Each further checker checks much of the same again: one takes half of four's processor time (measured), and no
    // longer on two cores.
    await run(process.execPath, [...tsc, "--emitDeclarationOnly", "--checkers", "1"], how);
    await run(process.execPath, [...tsc, "--declaration", "false", "--removeComments", "--noCheck"], how);
  } catch (error) {
    const words = error instanceof Error && "stdout" in error ? String(error.stdout) : String(error);
    throw new Error(`${one.manifest.name} does not compile:\n${words}`, { cause: error });
  }
  if (!existsSync(join(outDir, "index.js"))) throw new Error(`${one.manifest.name}: the compiler wrote no index.js`);
}

/** Writes the code and types that the entries need in short form, in place of the compiler's files. */
async function shorten(one: Package, dist: string): Promise<void> {
  const entries = entryPaths(one.manifest).map((path) => join(dirname(dist), path));
  const code = await bundleCode(dist, entries);
  const types = await bundleTypes(
    dist,
    entries.map((path) => path.replace(/\.js$/, ".d.ts")),
  );
  for (const name of readdirSync(dist)) rmSync(join(dist, name), { recursive: true });
  for (const [path, text] of [...code, ...types]) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
}

/** Copies files that are read at run time and are not TypeScript: migrations, pages. */
function copyOtherFiles(source: string, dist: string): void {
  cpSync(source, dist, { recursive: true, filter: (path) => !/\.tsx?$|\/fixtures$/.test(path) });
}

/** The pages are built before (scripts/pages.js), and are shipped by the service that serves them. */
function copyPages(root: string, dist: string): void {
  const built = { console: "packages/console/dist", guides: "docs/.vitepress/dist" };
  for (const [name, pages] of Object.entries(built)) {
    if (existsSync(join(root, pages))) cpSync(join(root, pages), join(dist, name), { recursive: true });
  }
}

/** The emitted types of each of a package's entries, by import name. */
function typesOf(one: Package, directory: string): Record<string, string[]> {
  const subpaths = Object.keys(one.manifest.exports);
  const types = entryPaths(one.manifest).map((path) => join(directory, path.replace(/\.js$/, ".d.ts")));
  return Object.fromEntries(types.map((path, at) => [`${one.manifest.name}${subpaths[at]?.slice(1)}`, [path]]));
}

/**
 * The code below `dist` that `entries` need, by path: a file for each entry and one for what several share, so that
 * what is not imported is not loaded. Comments, spaces and long local names go; exported names and properties stay.
 */
function bundleCode(dist: string, entries: readonly string[]): Promise<Map<string, string>> {
  return bundle(dist, entries, {
    entryFileNames: "[name].js",
    chunkFileNames: "shared/[name].js",
    minify: { compress: { target: "es2023" }, mangle: true, codegen: { removeWhitespace: true } },
  });
}

/**
 * The same for types: `entries` are the .d.ts files that TypeScript emitted. Types that cannot be imported are left
 * out.
 */
export async function bundleTypes(dist: string, entries: readonly string[]): Promise<Map<string, string>> {
  // TypeScript has emitted the declarations: the plugin's generator has nothing to do, and "oxc" installs nothing.
  const plugins = dts({ dtsInput: true, emitDtsOnly: true, tsconfig: false, generator: "oxc" });
  const names = { entryFileNames: "[name].ts", chunkFileNames: "shared/[name].ts", minifyInternalExports: false };
  const types = await bundle(dist, entries, names, plugins);
  return new Map([...types].map(([path, text]) => [path, `${shortDeclaration(text)}\n`]));
}

// Warnings about slow plugins are not needed here.
const checks = { bundlerTimings: false };

async function bundle(
  dist: string,
  entries: readonly string[],
  options: OutputOptions,
  plugins: Plugin[] = [],
): Promise<Map<string, string>> {
  const input = Object.fromEntries(entries.map((path) => [relative(dist, path).replace(/\.[jt]s$/, ""), path]));
  const bundled = await rolldown({ input, external: (id) => !/^[./]/.test(id), platform: "neutral", plugins, checks });
  const { output } = await bundled.generate(options);
  await bundled.close();
  return new Map(
    output.map((chunk) => {
      if (chunk.type !== "chunk") throw new Error(`${chunk.fileName} is no code`);
      return [`${dist}/${chunk.fileName}`, chunk.code];
    }),
  );
}

/**
 * A declaration without what only its author needs: line ends, indentation, the stars of comments, private members. Its
 * documentation stays, for editors to show.
 */
export function shortDeclaration(text: string): string {
  const parts = [...text.matchAll(part)];
  const short = parts.map(([, doc, literal, code = ""], at) => {
    // On the same line, TypeScript would take it for a comment on the preceding code.
    if (doc !== undefined) return `${at === 0 ? "" : "\n"}${shortDoc(doc)}`;
    return literal ?? shortCode(code, { afterDoc: isDoc(parts[at - 1]), beforeDoc: isDoc(parts[at + 1]) });
  });
  return short
    .join("")
    .replace(/;?\}/g, "}")
    .replace(/([=(:<,[])\|/g, "$1")
    .replace(/(?<=[{;])(?:private\b|#)[^;}]*;?/g, "");
}

/** A doc comment, a literal, or the code between those. */
const part = /(\/\*\*.*?\*\/)|("(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`[^`]*`)|((?:[^"'`/]|\/(?!\*\*))+)/gs;

function isDoc(match: RegExpExecArray | undefined): boolean {
  return match?.[1] !== undefined;
}

function shortCode(code: string, { afterDoc, beforeDoc }: { afterDoc: boolean; beforeDoc: boolean }): string {
  if (/\/[/*]/.test(code)) throw new Error(`a comment that documents nothing stands within a type: ${code}`);
  const short = code
    .replace(/\s+/g, " ")
    .replace(/ ?([{}()[\]<>=:;,|&?]) ?/g, "$1")
    .replace(/\bexport declare /g, "export ")
    .replace(/\bfrom $/, "from");
  return short.slice(afterDoc && short.startsWith(" ") ? 1 : 0, beforeDoc && short.endsWith(" ") ? -1 : undefined);
}

/** Paragraphs and tags keep lines of their own, which editors need. */
function shortDoc(doc: string): string {
  const lines = doc.slice(3, -2).replace(/\n[ \t]*\*[ \t]?/g, "\n");
  const paragraphs = lines.trim().split(/\n\s*\n/);
  return `/** ${paragraphs.map((paragraph) => paragraph.replace(/\s*\n(?!@)\s*/g, " ")).join("\n\n")} */`;
}
