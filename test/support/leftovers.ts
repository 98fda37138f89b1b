import { readdir, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { livingHolders } from "../../packages/server/src/postgres/service-lock.ts";

export const testHomePrefix = "paybell-test-";

/** A run younger than this may not have taken its home yet. */
const startingMs = 60_000;

/** Ends what an earlier run left when it was killed: its server goes on without it, and its folder stays. */
export async function removeLeftovers(): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    if (!name.startsWith(testHomePrefix)) continue;
    const folder = join(tmpdir(), name);
    const home = join(folder, "home");
    const changedMs = (await stat(folder).catch(() => undefined))?.mtimeMs ?? Date.now();
    if (Date.now() - changedMs < startingMs || (await livingHolders(home)).length > 0) continue;
    // Adopts the orphan if there is one. Whoever else removes the same leftovers at this moment holds the lock.
    const orphan = await startEmbeddedPostgres({
      home,
      log: () => undefined,
      systemDirectory: join(folder, "system"),
    }).catch(() => undefined);
    await orphan?.stop();
    if (orphan !== undefined) await rm(folder, { recursive: true, force: true });
  }
}
