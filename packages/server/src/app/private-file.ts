import { rename, writeFile } from "node:fs/promises";

/** Writes the file atomically, and never readable by others. */
export async function writePrivately(path: string, text: string): Promise<void> {
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}
