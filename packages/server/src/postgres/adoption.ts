import { setTimeout as pause } from "node:timers/promises";
import type { DataLocation } from "./data-location.ts";
import { serverVersion } from "./database.ts";
import type { Passwords } from "./passwords.ts";
import { type Postmaster, pollMs, startTimeoutMs } from "./postmaster.ts";
import { disownPostmasterFile, isPostmasterOf, readPostmasterFile } from "./postmaster-file.ts";
import { identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { PostgresStartError } from "./start-error.ts";

const watchEveryMs = 250;
/** A server that is ready and does not answer for this long is stuck. */
const adoptTimeoutMs = 15_000;

/**
 * Adopts the server that an earlier service left running when it was killed. Undefined when there is none: no file, a
 * dead process, or a number that another program wears by now.
 */
export async function adoptPostmaster(
  location: DataLocation,
  passwords: Passwords,
  log: (line: string) => void,
): Promise<Postmaster | undefined> {
  const { dataDirectory } = location;
  const found = await readPostmasterFile(dataDirectory);
  const orphan = found === undefined ? undefined : await identify(found.pid);
  if (found === undefined || orphan === undefined) return undefined;
  if (!(await isPostmasterOf(orphan.pid, dataDirectory))) {
    await disownPostmasterFile(dataDirectory);
    return undefined;
  }
  const deadlineMs = performance.now() + (found.status === "ready" ? adoptTimeoutMs : startTimeoutMs);
  while (await isAlive(orphan)) {
    const { socketDirectory, port, status } = (await readPostmasterFile(dataDirectory)) ?? found;
    const socket = { socketDirectory, port };
    const version = status === "ready" ? await serverVersion(socket, passwords, location) : undefined;
    if (version !== undefined) {
      log(`Adopted PostgreSQL ${version} (process ${orphan.pid}), left running by a service that was killed.`);
      return { pid: orphan.pid, ...socket, version, signal: signalTo(orphan), gone: untilGone(orphan) };
    }
    if (performance.now() > deadlineMs) throw unresponsive(orphan.pid, dataDirectory);
    await pause(pollMs);
  }
  return undefined;
}

function signalTo(orphan: ProcessIdentity): Postmaster["signal"] {
  return async (name) => {
    if (await isAlive(orphan)) process.kill(orphan.pid, name);
  };
}

/** An adopted server is not our child, so its end is not signalled: it is polled, cheaply. */
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

function unresponsive(pid: number, dataDirectory: string): PostgresStartError {
  return new PostgresStartError(
    "orphan_unresponsive",
    `PostgreSQL (process ${pid}) is running on ${dataDirectory} and answers nobody.`,
    `End it with: kill -QUIT ${pid}; then start again. What was committed stays.`,
  );
}
