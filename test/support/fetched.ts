import { existsSync, renameSync, rmSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { join } from "node:path";

const cache = join(import.meta.dirname, "../../node_modules/.cache");

/**
 * A folder of node_modules/.cache that is filled once, by a package manager of another language.
 *
 * @returns undefined if its registry does not answer
 */
export async function fetchOnce(
  name: string,
  fetch: (folder: string) => Promise<unknown>,
): Promise<string | undefined> {
  const folder = join(cache, name);
  if (existsSync(folder)) return folder;
  const own = `${folder}-${process.pid}`;
  await mkdir(own, { recursive: true });
  try {
    await fetch(own);
    renameSync(own, folder);
    return folder;
  } catch {
    rmSync(own, { recursive: true, force: true });
    return undefined;
  }
}
