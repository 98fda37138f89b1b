import { spawn } from "node:child_process";
import { once } from "node:events";
import { createReadStream } from "node:fs";
import { open, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as pause } from "node:timers/promises";
import { within } from "../clock.ts";
import type { Binaries } from "./binaries.ts";
import { cleanSocketDirectory, type DataLocation, makeSocketDirectory, socketPort } from "./location.ts";
import { cleanEnvironment, commandLine } from "./process.ts";
import { ownSettings, settingArguments } from "./settings.ts";
import { explainFailedStart, PostgresStartError } from "./start-error.ts";

export interface Postmaster {
  readonly pid: number;
  readonly socketDirectory: string;
  /** Sends it a signal, unless it is gone: its number may be another program's then. */
  signal(name: "SIGINT" | "SIGQUIT"): Promise<void>;
  /** Resolves when the process has ended, for any reason. */
  readonly gone: Promise<void>;
}

export interface LaunchOptions {
  readonly location: DataLocation;
  readonly binaries: Binaries;
  readonly settings: Readonly<Record<string, string>>;
  /** PostgreSQL's own log. */
  readonly logPath: string;
  /** Messages for the operator. */
  readonly log: (line: string) => void;
}

/** After a crash at full load the log of 2 GB is replayed first, and interrupting only repeats it. */
const startTimeoutMs = 10 * 60_000;
/** A start takes 60 ms, so a longer interval would be noticeable. */
const pollMs = 5;
const progressEveryMs = 10_000;
/**
 * After a `kill -9` of the server its own processes need a moment to notice, and PostgreSQL refuses to start beside
 * them.
 */
const leftoversTimeoutMs = 10_000;
const leftoversPauseMs = 50;

/** Starts a server, as a child of this process, and waits until it takes connections. */
export async function launchPostmaster(options: LaunchOptions): Promise<Postmaster> {
  const { dataDirectory } = options.location;
  const socketDirectory = await makeSocketDirectory(options.location);
  const deadlineMs = performance.now() + leftoversTimeoutMs;
  try {
    for (;;) {
      const launched = await launchOnce(options, socketDirectory);
      if (typeof launched !== "string") return launched;
      const isLeftover = /pre-existing shared memory block .* is still in use/.test(launched);
      if (!isLeftover || performance.now() > deadlineMs) {
        throw await explainFailedStart({ output: launched, dataDirectory, socketDirectory });
      }
      await pause(leftoversPauseMs);
    }
  } catch (error) {
    await cleanSocketDirectory(socketDirectory);
    throw error;
  }
}

/** The server, or its last words. */
async function launchOnce(options: LaunchOptions, socketDirectory: string): Promise<Postmaster | string> {
  const { location, binaries, settings, log, logPath } = options;
  const { file, sizeBytes } = await openServerLog(logPath);
  const all = { ...settings, ...ownSettings(socketDirectory, socketPort) };
  const child = spawn(
    join(binaries.native, "bin", "postgres"),
    ["-D", location.dataDirectory, ...settingArguments(all)],
    // Its own process group: Ctrl-C in the terminal must not stop it before the service has drained.
    { env: cleanEnvironment(), cwd: "/", stdio: ["ignore", file.fd, file.fd], detached: true, ...location.account },
  );
  let failure: Error | undefined;
  let isGone = false;
  const gone = once(child, "exit")
    .catch((error: Error) => {
      failure = error;
    })
    .then(() => {
      isGone = true;
    });
  // The service stays alive by its own work; a program that merely forgot to stop PostgreSQL can still end.
  child.unref();
  await file.close();
  const startedMs = performance.now();
  let nextProgressMs = startedMs + progressEveryMs;
  while (!isGone) {
    const found = await readPostmasterFile(location.dataDirectory);
    const signal = async (name: NodeJS.Signals) => void child.kill(name);
    if (found?.pid === child.pid && found?.status === "ready") return { pid: found.pid, socketDirectory, signal, gone };
    const nowMs = performance.now();
    if (nowMs > nextProgressMs) {
      log(`PostgreSQL is still starting: ${(await logTail(logPath, sizeBytes)).split("\n").at(-1)}`);
      nextProgressMs += progressEveryMs;
    }
    if (nowMs - startedMs > startTimeoutMs) {
      child.kill("SIGINT");
      // Another start, at once, must not meet it while it ends.
      await goneWithin({ gone }, quitTimeoutMs);
      throw new PostgresStartError(
        "start_timeout",
        `PostgreSQL was not ready within ${startTimeoutMs / 60_000} minutes.`,
        `Read ${logPath}: a slow disk or a long recovery shows there; then start again.`,
      );
    }
    await pause(pollMs);
  }
  return failure?.message ?? logTail(logPath, sizeBytes);
}

const stopTimeoutDefaultMs = 30_000;
/** An immediate shutdown kills what does not obey within 5 s (PostgreSQL's own bound). */
const quitTimeoutMs = 10_000;

/**
 * Fast shutdown (SIGINT), then after the bound an immediate one (SIGQUIT), whose next start replays the log.
 *
 * @returns whether it ended
 */
export async function stopPostmaster(
  postmaster: Postmaster,
  log: (line: string) => void,
  stopTimeoutMs = stopTimeoutDefaultMs,
): Promise<boolean> {
  await postmaster.signal("SIGINT");
  if (!(await goneWithin(postmaster, stopTimeoutMs))) {
    log(
      `PostgreSQL did not stop within ${stopTimeoutMs / 1000} s: it is stopped at once and recovers at its next start.`,
    );
    await postmaster.signal("SIGQUIT");
    if (!(await goneWithin(postmaster, quitTimeoutMs))) {
      log(`PostgreSQL (process ${postmaster.pid}) does not end: kill -9 ${postmaster.pid}`);
      return false;
    }
  }
  await cleanSocketDirectory(postmaster.socketDirectory);
  return true;
}

/** The timer is not unref'd: it alone keeps this process alive until the server is gone. */
async function goneWithin({ gone }: Pick<Postmaster, "gone">, boundMs: number): Promise<boolean> {
  const isGone = gone.then(() => true);
  return (await within(boundMs, isGone)) ?? false;
}

const orphanCheckEveryMs = 20;

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
  if (found === undefined) return;
  const { pid, socketDirectory } = found;
  const isRunning = async () => (await commandLine(pid)).includes(` -D ${dataDirectory} `);
  if (!(await isRunning())) return disownPostmasterFile(dataDirectory);
  log(`Stopping PostgreSQL (process ${pid}), left running by a service that was killed.`);
  const signal = async (name: NodeJS.Signals) => {
    if (await isRunning()) process.kill(pid, name);
  };
  // It is not our child, so nobody tells us of its end.
  const watch = async () => {
    while (await isRunning()) await pause(orphanCheckEveryMs, undefined, { ref: false });
  };
  const gone = watch();
  if (await stopPostmaster({ pid, socketDirectory, signal, gone }, log, stopTimeoutMs)) return;
  throw new PostgresStartError(
    "orphan_unresponsive",
    `PostgreSQL (process ${pid}) is running on ${dataDirectory} and does not stop.`,
    `End it with: kill -9 ${pid}; then start again. What was committed stays.`,
  );
}

/** The content of `postmaster.pid`: the server's own record in its data directory. */
export interface PostmasterFile {
  readonly pid: number;
  readonly socketDirectory: string;
  /** `starting`, `stopping`, `ready`, `standby`, or empty before the first. */
  readonly status: string;
}

/** Undefined when there is none, or when it is not written to its end yet. */
export async function readPostmasterFile(dataDirectory: string): Promise<PostmasterFile | undefined> {
  const content = await readFile(postmasterFile(dataDirectory), "utf8").catch(() => "");
  // Then follow the data directory, the start, the port; and behind the socket folder an address and shared memory.
  const [pidLine, , , , socketDirectory, , , status = ""] = content.split("\n");
  const pid = Number(pidLine);
  if (!Number.isSafeInteger(pid) || pid <= 0 || socketDirectory === undefined) return undefined;
  return { pid, socketDirectory, status: status.trim() };
}

/**
 * Takes a dead server's number out of the file, because PostgreSQL would refuse to start if another program has that
 * number now. The file stays, with our own number: PostgreSQL knows its parent's for stale, and still reads the line of
 * the shared memory, to make sure that no process of the dead server is left. Deleting the file would skip that check.
 */
async function disownPostmasterFile(dataDirectory: string): Promise<void> {
  const path = postmasterFile(dataDirectory);
  const [, ...others] = (await readFile(path, "utf8")).split("\n");
  await writeFile(path, [String(process.pid), ...others].join("\n"));
}

function postmasterFile(dataDirectory: string): string {
  return join(dataDirectory, "postmaster.pid");
}

const rotateBytes = 10 * 1024 * 1024;
const tailBytes = 16 * 1024;
const tailLines = 20;

/**
 * Opens the log for a new server, readable only by the owner. One larger than 10 MB becomes `<path>.1`: only at a
 * start, because a running server holds its descriptor.
 */
async function openServerLog(path: string) {
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  if (size > rotateBytes) await rename(path, `${path}.1`);
  const file = await open(path, "a", 0o600);
  return { file, sizeBytes: (await file.stat()).size };
}

/** The last lines of PostgreSQL's own log written since `fromByte`; the newest come last. */
export async function logTail(path: string, fromByte = 0): Promise<string> {
  const size = (await stat(path).catch(() => undefined))?.size ?? 0;
  const start = Math.max(size - tailBytes, fromByte);
  const tail = await text(createReadStream(path, { start })).catch(() => "");
  return tail.trimEnd().split("\n").slice(-tailLines).join("\n");
}
