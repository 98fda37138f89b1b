import { execFile } from "node:child_process";
import { existsSync, mkdirSync } from "node:fs";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";

export const repository = join(import.meta.dirname, "../..");
export const ops = join(repository, "ops");
export const run = promisify(execFile);

/** A program of this machine; undefined, with a message, if it is missing. Debian keeps servers in /usr/sbin. */
export function tool(name: string): string | undefined {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter), "/usr/sbin", "/sbin"];
  const found = folders.map((folder) => join(folder, name)).find((path) => existsSync(path));
  if (found === undefined) process.stderr.write(`NOT TRIED with ${name}, which is not installed\n`);
  return found;
}

/** A Python module from its package index, fetched once; undefined, with a message, if that fails. */
export async function pythonModule(name: string, version: string): Promise<NodeJS.ProcessEnv | undefined> {
  const folder = join(repository, "node_modules/.cache/python", `${name}-${version}`);
  if (!existsSync(folder)) {
    mkdirSync(join(folder, ".."), { recursive: true });
    const args = ["-m", "pip", "install", "--quiet", "--target", folder, `${name}==${version}`];
    await run("python3", args).catch(() => undefined);
  }
  if (existsSync(folder)) return { ...process.env, PYTHONPATH: folder };
  process.stderr.write(`NOT TRIED with ${name}, which could not be fetched\n`);
  return undefined;
}
