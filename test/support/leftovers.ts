import { readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { readPostmasterFile } from "../../packages/server/src/postgres/postmaster-file.ts";
import { livingHolders } from "../../packages/server/src/postgres/service-lock.ts";

export const testHomePrefix = "paybell-test-";

/** A run younger than this may not have taken its home yet. */
const startingMs = 60_000;

/** Cleans up after a killed run: its server still runs, and its folder still exists. */
export async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (name.startsWith(testHomePrefix)) await removeIfLeft(join(tmpdir(), name));
  }
}

async function removeIfLeft(folder: string): Promise<void> {
  const home = join(folder, "home");
  const changedMs = (await stat(folder).catch(() => undefined))?.mtimeMs ?? Date.now();
  if (Date.now() - changedMs < startingMs || (await livingHolders(home)).length > 0) return;
  if ((await readPostmasterFile(join(home, "postgres"))) !== undefined) {
    // Adopted, to be stopped. Where another run removes the same leftovers, it holds the home, and does this.
    const options = { home, log: () => undefined, systemDirectory: join(folder, "system") };
    const orphan = await startEmbeddedPostgres(options).catch(() => undefined);
    if (orphan === undefined) return;
    await orphan.stop();
  }
  await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}
