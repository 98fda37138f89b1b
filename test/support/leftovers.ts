import { readdir, rm, stat, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { readPostmasterFile } from "../../packages/server/src/postgres/postmaster.ts";
import { requireFreeHome } from "../../packages/server/src/postgres/service-lock.ts";

export const testHomePrefix = "paybell-test-";

/** File systems in memory, of which Linux has one. */
const memoryFolder = "/dev/shm";

/** A run's databases take 1 GiB at most. */
const roomBytesMin = 3 * 2 ** 30;

/**
 * The parent of the folders of runs, each of which has its PostgreSQL's data: in memory if there is room. Measured:
 * ext4 passes by each inode that was deleted lately, so that creating the 430 files of a database takes 45 to 180 ms
 * there and 25 ms in memory. The tests of the store take half the processor time.
 */
export async function parentOfRuns(): Promise<string> {
  const memory = await statfs(memoryFolder).catch(() => undefined);
  return memory !== undefined && memory.bavail * memory.bsize >= roomBytesMin ? memoryFolder : tmpdir();
}

/** A run younger than this may not have taken its home yet. */
const startingMs = 60_000;

/** Cleans up after a killed run: its server still runs, and its folder still exists. */
export async function removeLeftovers(): Promise<void> {
  for (const parent of [memoryFolder, tmpdir()]) {
    for (const name of await readdir(parent).catch(() => [])) {
      if (name.startsWith(testHomePrefix)) await removeIfLeft(join(parent, name));
    }
  }
}

async function removeIfLeft(folder: string): Promise<void> {
  const home = join(folder, "home");
  const changedMs = (await stat(folder).catch(() => undefined))?.mtimeMs ?? Date.now();
  if (Date.now() - changedMs < startingMs) return;
  const isFree = await requireFreeHome(home).then(
    () => true,
    () => false,
  );
  if (!isFree) return;
  if ((await readPostmasterFile(join(home, "postgres"))) !== undefined) {
    // Adopted, to be stopped. Where another run removes the same leftovers, it holds the home, and does this.
    const options = { home, log: () => undefined, systemDirectory: join(folder, "system") };
    const orphan = await startEmbeddedPostgres(options).catch(() => undefined);
    if (orphan === undefined) return;
    await orphan.stop();
  }
  await rm(folder, { recursive: true, force: true }).catch(() => undefined);
}
