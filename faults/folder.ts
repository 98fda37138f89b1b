import { chmod } from "node:fs/promises";

/** As root, PostgreSQL runs as another user, who passes through here. */
export async function openUp(folder: string): Promise<string> {
  await chmod(folder, 0o711);
  return folder;
}
