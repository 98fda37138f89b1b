import { disownPostmasterFile, isPostmasterOf, readPostmasterFile } from "./postmaster-file.ts";
import { identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { PostgresStartError } from "./start-error.ts";
import { stopPostmaster } from "./stop.ts";

const watchEveryMs = 20;

/**
 * Stops the server that an earlier service left running when it was killed, so that a new one starts in its place.
 * There may be none: no file, a dead process, or a number that another program has by now.
 *
 * @throws PostgresStartError when it does not end
 */
export async function stopOrphan(
  dataDirectory: string,
  log: (line: string) => void,
  stopTimeoutMs: number | undefined,
): Promise<void> {
  const found = await readPostmasterFile(dataDirectory);
  const orphan = found === undefined ? undefined : await identify(found.pid);
  if (found === undefined || orphan === undefined) return;
  if (!(await isPostmasterOf(orphan.pid, dataDirectory))) return disownPostmasterFile(dataDirectory);
  log(`Stopping PostgreSQL (process ${orphan.pid}), left running by a service that was killed.`);
  const signal = async (name: NodeJS.Signals) => {
    // Its number may be another program's once it has ended.
    if (await isAlive(orphan)) process.kill(orphan.pid, name);
  };
  const { socketDirectory } = found;
  await stopPostmaster({ pid: orphan.pid, socketDirectory, signal, gone: untilGone(orphan) }, log, stopTimeoutMs);
  if (await isAlive(orphan)) {
    throw new PostgresStartError(
      "orphan_unresponsive",
      `PostgreSQL (process ${orphan.pid}) is running on ${dataDirectory} and does not stop.`,
      `End it with: kill -9 ${orphan.pid}; then start again. What was committed stays.`,
    );
  }
}

/** An orphan is not our child, so nobody tells us of its end. */
function untilGone(orphan: ProcessIdentity): Promise<void> {
  return new Promise((resolve) => {
    const watch = setInterval(async () => {
      if (await isAlive(orphan)) return;
      clearInterval(watch);
      resolve();
    }, watchEveryMs);
    watch.unref();
  });
}
