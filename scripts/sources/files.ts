import { readdirSync } from "node:fs";
import { join } from "node:path";

// Generated or installed folders.
const FOLDERS_NOT_OURS = new Set(["node_modules", "dist", ".git", ".paybell", "coverage"]);
// Named by its whole path, so that no other folder can hide.
const PATHS_NOT_OURS = new Set(["bench/results", "docs/.vitepress/.temp"]);

/** Every file and folder of the project below `root`, as paths from `root` with `/`, in a stable order. */
export function listTree(root: string): { files: string[]; folders: string[] } {
  const files: string[] = [];
  const folders: string[] = [];
  const waiting = [""];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory()) {
        if (FOLDERS_NOT_OURS.has(entry.name) || PATHS_NOT_OURS.has(path)) continue;
        folders.push(path);
        waiting.push(path);
      } else if (entry.isFile()) files.push(path);
    }
  }
  return { files: files.sort(), folders: folders.sort() };
}

export function isTypeScript(path: string): boolean {
  return /\.tsx?$/.test(path);
}

/** Tests, and what only they use, are free to import what they need, may be longer, and are not shipped. */
export function isTest(path: string): boolean {
  return /\.(?:test|fixture)\.tsx?$|\/testing\/|\/conformance\.ts$/.test(path);
}
