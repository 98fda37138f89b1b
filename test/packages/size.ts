import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { run } from "./project.ts";

/** Counts the text of every module of ours that Node loads for an import, whoever imports it. */
const counting = (entries: readonly string[]) => `
import { registerHooks } from "node:module";
let bytes = 0;
registerHooks({
  load(url, context, next) {
    const loaded = next(url, context);
    if (url.includes("/node_modules/@paybell/")) bytes += Buffer.byteLength(loaded.source);
    return loaded;
  },
});
for (const entry of ${JSON.stringify(entries)}) await import(entry);
process.stdout.write(String(bytes));
`;

/** How many bytes of code a process of the project loads for these entries, in all. */
export async function loadedBytes(project: string, entries: readonly string[]): Promise<number> {
  writeFileSync(join(project, "counting.mjs"), counting(entries));
  const { stdout } = await run(process.execPath, ["counting.mjs"], { cwd: project });
  return Number(stdout);
}
