import { writeFileSync } from "node:fs";
import { join } from "node:path";
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
