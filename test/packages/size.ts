import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./project.ts";

export interface Loaded {
  /** The code of our packages, whatever imports it. */
  readonly bytes: number;
  /** Node's own modules that our packages import. */
  readonly builtins: readonly string[];
}

/** Counts the text of every module that Node loads for an import, and notes what of Node itself it imports. */
const counting = (entries: readonly string[]) => `
import { registerHooks } from "node:module";
let bytes = 0;
const builtins = new Set();
registerHooks({
  resolve(specifier, context, next) {
    if (specifier.startsWith("node:") && context.parentURL?.includes("/@paybell/")) builtins.add(specifier);
    return next(specifier, context);
  },
  load(url, context, next) {
    const loaded = next(url, context);
    if (url.includes("/node_modules/@paybell/")) bytes += Buffer.byteLength(loaded.source);
    return loaded;
  },
});
for (const entry of ${JSON.stringify(entries)}) await import(entry);
process.stdout.write(JSON.stringify({ bytes, builtins: [...builtins].sort() }));
`;

/** Everything that a process of the project loads for these entries. */
export async function loaded(project: string, entries: readonly string[]): Promise<Loaded> {
  writeFileSync(join(project, "counting.mjs"), counting(entries));
  const { stdout } = await run(process.execPath, ["counting.mjs"], { cwd: project });
  return JSON.parse(stdout) as Loaded;
}

/** The bytes of every file of an installed package, by its path within it. */
export function installedFiles(directory: string): Map<string, number> {
  const paths = readdirSync(directory, { recursive: true, encoding: "utf8" });
  const files = paths.map((path) => ({ path, stats: statSync(join(directory, path)) }));
  // The licence's text is in every package, and is not part of the library's size.
  const weighed = files.filter(({ path, stats }) => stats.isFile() && path !== "LICENSE");
  return new Map(weighed.map(({ path, stats }) => [path, stats.size]));
}

const relativeImport = /(?:from|import)\s*"(\.[^"]+)\.[jt]s"/g;

/** The files that entries need of their package, code and types, followed from import to import. */
export function reachedFrom(directory: string, entries: readonly string[]): Set<string> {
  const reached = new Set<string>();
  const visit = (path: string, extension: string): void => {
    if (reached.has(path)) return;
    reached.add(path);
    for (const [, relative = ""] of readFileSync(join(directory, path), "utf8").matchAll(relativeImport)) {
      visit(join(dirname(path), relative + extension), extension);
    }
  };
  for (const extension of [".js", ".d.ts"]) {
    for (const entry of entries) visit(entry.replace("./", "").replace(/\.js$/, extension), extension);
  }
  return reached;
}
