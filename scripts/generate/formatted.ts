import { execFileSync } from "node:child_process";
import { join } from "node:path";
import type { GeneratedFile } from "./document.ts";

const root = join(import.meta.dirname, "../..");
const biome = join(root, "node_modules/@biomejs/biome/bin/biome");

/** As the formatter leaves it, so that the check of formats and the check of generated files agree. */
export function formatted({ path, text }: GeneratedFile): GeneratedFile {
  const args = [biome, "check", "--write", `--stdin-file-path=${path}`];
  const stdio: ["pipe", "pipe", "pipe"] = ["pipe", "pipe", "pipe"];
  const options = { cwd: root, input: text, stdio, encoding: "utf8", maxBuffer: 16 * 1024 * 1024 } as const;
  return { path, text: execFileSync(process.execPath, args, options) };
}
