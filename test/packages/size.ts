import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { run } from "./project.ts";

export interface Loaded {
  /** The code of our packages, whoever imports it. */
  readonly bytes: number;
  /** What of Node itself our packages import. */
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

/** What a process of the project loads for these entries, in all. */
export async function loaded(project: string, entries: readonly string[]): Promise<Loaded> {
  writeFileSync(join(project, "counting.mjs"), counting(entries));
  const { stdout } = await run(process.execPath, ["counting.mjs"], { cwd: project });
  return JSON.parse(stdout) as Loaded;
}

const relativeImport = /(?:from|import)\s*"(\.[^"]+)\.[jt]s"/g;

/** Code and types of one package that an entry needs, followed file by file; other packages do not count. */
export function bytesReached(project: string, name: string): number {
  const reached = new Map<string, number>();
  const visit = (path: string, extension: string): void => {
    if (reached.has(path)) return;
    const text = readFileSync(path, "utf8");
    reached.set(path, Buffer.byteLength(text));
    for (const [, relative = ""] of text.matchAll(relativeImport)) {
      visit(join(dirname(path), relative + extension), extension);
    }
  };
  for (const extension of [".js", ".d.ts"]) {
    visit(join(project, "node_modules", name, `dist/index${extension}`), extension);
  }
  if (reached.size < 5) throw new Error(`${reached.size} files are too few: its imports were not read`);
  return [...reached.values()].reduce((sum, bytes) => sum + bytes, 0);
}
