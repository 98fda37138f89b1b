import { rename, writeFile } from "node:fs/promises";

/** Written whole or not at all, and never readable by others. */
export async function writePrivately(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}
