import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Binaries } from "./binaries.ts";
import { serverVersion } from "./database.ts";
import type { Place } from "./place.ts";
import { disownPostmasterFile, isPostmasterOf, readPostmasterFile } from "./postmaster-file.ts";
import { identify, isAlive, type ProcessIdentity } from "./process-identity.ts";
import { explainRefusal } from "./refusal.ts";
import { openServerLog, serverLog } from "./server-log.ts";
import { ownSettings, settingArguments } from "./settings.ts";
import { cleanSocketDirectory, makeSocketDirectory, socketPort } from "./socket-directory.ts";
import { PostgresStartError } from "./start-error.ts";
import { cleanEnvironment } from "./tool.ts";

/** A running server, ours by birth or by adoption. */
export interface Postmaster {
  readonly pid: number;
  readonly socketDirectory: string;
  readonly port: number;
  readonly version: string;
  /** Sends it a signal, unless it is gone: its number may be another program's then. */
  signal(name: "SIGINT" | "SIGQUIT"): Promise<void>;
  /** Resolves when the process is gone, for whatever reason. */
  readonly gone: Promise<void>;
}

/**
 * How long a start may take: after a crash at full load the log of 2 GB is replayed first, and interrupting only
 * repeats it.
 */
const startTimeoutMs = 10 * 60_000;
const progressEveryMs = 10_000;
const pollMs = 5;
const watchEveryMs = 250;
/** A server that is ready and answers nobody for so long is stuck. */
const adoptTimeoutMs = 15_000;
/**
 * After a `kill -9` of the server its own processes need a moment to notice, and PostgreSQL refuses to start beside
 * them.
 */
const leftoversTimeoutMs = 10_000;

/**
 * Adopts the server that an earlier service left running when it was killed. Undefined when there is none: no file, a
 * dead process, or a number that another program wears by now.
 */
export async function adoptPostmaster(place: Place, log: (line: string) => void): Promise<Postmaster | undefined> {
  const { dataDirectory } = place;
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
    const version = status === "ready" ? await serverVersion(socketDirectory, port, dataDirectory) : undefined;
    if (version !== undefined) {
      log(`Adopted PostgreSQL ${version} (process ${orphan.pid}), left running by a service that was killed.`);
      return { pid: orphan.pid, socketDirectory, port, version, signal: signalTo(orphan), gone: untilGone(orphan) };
    }
    if (performance.now() > deadlineMs) throw unresponsive(orphan.pid, dataDirectory);
    await pause(pollMs);
  }
  return undefined;
}

/** Starts a server and waits until it answers. */
export async function launchPostmaster(options: {
  place: Place;
  binaries: Binaries;
  settings: Readonly<Record<string, string>>;
  logPath: string;
  log: (line: string) => void;
}): Promise<Postmaster> {
  const socketDirectory = await makeSocketDirectory(options.place);
  const deadlineMs = performance.now() + leftoversTimeoutMs;
  try {
    for (;;) {
      const outcome = await launchOnce({ ...options, socketDirectory });
      if (typeof outcome !== "string") return outcome;
      const leftovers = /pre-existing shared memory block .* is still in use/.test(outcome);
      if (!leftovers || performance.now() > deadlineMs) {
        throw await explainRefusal({ output: outcome, dataDirectory: options.place.dataDirectory, socketDirectory });
      }
      await pause(pollMs * 10);
    }
  } catch (error) {
    await cleanSocketDirectory(socketDirectory);
    throw error;
  }
}

/** The server, or its last words. */
async function launchOnce(options: {
  place: Place;
  binaries: Binaries;
  settings: Readonly<Record<string, string>>;
  logPath: string;
  log: (line: string) => void;
  socketDirectory: string;
}): Promise<Postmaster | string> {
  const { place, socketDirectory } = options;
  const output = await openServerLog(options.logPath);
  const settings = { ...options.settings, ...ownSettings(socketDirectory, socketPort) };
  const child = spawn(
    join(options.binaries.native, "bin", "postgres"),
    ["-D", place.dataDirectory, ...settingArguments(settings)],
    // Its own process group: Ctrl-C in the terminal must not stop it before the service has drained.
    {
      env: cleanEnvironment(),
      cwd: "/",
      stdio: ["ignore", output.file.fd, output.file.fd],
      detached: true,
      ...place.account,
    },
  );
  let failure: Error | undefined;
  let exited = false;
  const gone = new Promise<void>((resolve) => {
    const end = (error?: Error) => {
      failure = error;
      exited = true;
      resolve();
    };
    child.once("error", end);
    child.once("exit", () => end());
  });
  // The service stays alive by its own work; a program that merely forgot to stop PostgreSQL can still end.
  child.unref();
  await output.file.close();

  const startedMs = performance.now();
  let nextProgressMs = startedMs + progressEveryMs;
  while (!exited) {
    const note = await readPostmasterFile(place.dataDirectory);
    if (note !== undefined && note.pid === child.pid && note.status === "ready") {
      const version = await serverVersion(socketDirectory, socketPort, place.dataDirectory);
      const signal = async (name: NodeJS.Signals) => void child.kill(name);
      if (version !== undefined) return { pid: note.pid, socketDirectory, port: socketPort, version, signal, gone };
    }
    const nowMs = performance.now();
    if (nowMs > nextProgressMs) {
      options.log(
        `PostgreSQL is still starting: ${(await serverLog(options.logPath).tail(output.sizeBytes)).split("\n").at(-1)}`,
      );
      nextProgressMs += progressEveryMs;
    }
    if (nowMs - startedMs > startTimeoutMs) {
      child.kill("SIGINT");
      throw startTimeout(options.logPath);
    }
    await pause(pollMs);
  }
  return failure === undefined ? await serverLog(options.logPath).tail(output.sizeBytes) : failure.message;
}

function signalTo(orphan: ProcessIdentity): Postmaster["signal"] {
  return async (name) => {
    if (await isAlive(orphan)) process.kill(orphan.pid, name);
  };
}

/** An adopted server is not our child, so nobody tells us of its end: it is looked after, cheaply. */
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

function startTimeout(logPath: string): PostgresStartError {
  return new PostgresStartError(
    "start_timeout",
    `PostgreSQL was not ready within ${startTimeoutMs / 60_000} minutes.`,
    `Read ${logPath}: a slow disk or a long recovery shows there; then start again.`,
  );
}
