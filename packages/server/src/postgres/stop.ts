import type { Postmaster } from "./postmaster.ts";
import { cleanSocketDirectory } from "./socket-directory.ts";

const stopTimeoutDefaultMs = 30_000;
/** An immediate shutdown kills what does not obey within 5 s (PostgreSQL's own bound). */
const quitTimeoutMs = 10_000;

/** Fast shutdown (SIGINT), then after the bound an immediate one (SIGQUIT), whose next start replays the log. */
export async function stopPostmaster(
  postmaster: Pick<Postmaster, "pid" | "socketDirectory" | "signal" | "gone">,
  log: (line: string) => void,
  stopTimeoutMs = stopTimeoutDefaultMs,
): Promise<void> {
  await postmaster.signal("SIGINT");
  if (!(await goneWithin(postmaster, stopTimeoutMs))) {
    const bound = `within ${stopTimeoutMs / 1000} s`;
    log(`PostgreSQL did not stop ${bound}: it is stopped at once and recovers at its next start.`);
    await postmaster.signal("SIGQUIT");
    if (!(await goneWithin(postmaster, quitTimeoutMs))) {
      log(`PostgreSQL (process ${postmaster.pid}) does not end: kill -9 ${postmaster.pid}`);
      return;
    }
  }
  await cleanSocketDirectory(postmaster.socketDirectory);
}

function goneWithin(postmaster: Pick<Postmaster, "gone">, boundMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    // Not unref'd: it alone keeps this process alive until the server is gone.
    const bound = setTimeout(() => resolve(false), boundMs);
    void postmaster.gone.then(() => {
      clearTimeout(bound);
      resolve(true);
    });
  });
}
