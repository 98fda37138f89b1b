import { spawn } from "node:child_process";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Binaries } from "./binaries.ts";
import type { DataLocation } from "./data-location.ts";
import { serverVersion } from "./database.ts";
import { explainFailedStart } from "./failed-start.ts";
import type { Passwords } from "./passwords.ts";
import { type Postmaster, pollMs, startTimeoutMs } from "./postmaster.ts";
import { readPostmasterFile } from "./postmaster-file.ts";
import { openServerLog, serverLog } from "./server-log.ts";
import { ownSettings, settingArguments } from "./settings.ts";
import { cleanSocketDirectory, makeSocketDirectory, socketPort } from "./socket-directory.ts";
import { PostgresStartError } from "./start-error.ts";
import { cleanEnvironment } from "./tool.ts";

export interface LaunchOptions {
  readonly location: DataLocation;
  readonly binaries: Binaries;
  readonly settings: Readonly<Record<string, string>>;
  readonly passwords: Passwords;
  /** PostgreSQL's own log. */
  readonly logPath: string;
  /** Messages for the operator. */
  readonly log: (line: string) => void;
}

/** A process that may become a server. */
interface Launched {
  readonly pid: number | undefined;
  readonly gone: Promise<void>;
  isGone(): boolean;
  kill(name: NodeJS.Signals): void;
  lastWords(): Promise<string>;
}

const progressEveryMs = 10_000;
/**
 * After a `kill -9` of the server its own processes need a moment to notice, and PostgreSQL refuses to start beside
 * them.
 */
const leftoversTimeoutMs = 10_000;
const leftoversPauseMs = 50;

/** Starts a server and waits until it answers. */
export async function launchPostmaster(options: LaunchOptions): Promise<Postmaster> {
  const socketDirectory = await makeSocketDirectory(options.location);
  const deadlineMs = performance.now() + leftoversTimeoutMs;
  try {
    for (;;) {
      const outcome = await launchOnce(options, socketDirectory);
      if (typeof outcome !== "string") return outcome;
      const leftovers = /pre-existing shared memory block .* is still in use/.test(outcome);
      if (!leftovers || performance.now() > deadlineMs) {
        throw await explainFailedStart({
          output: outcome,
          dataDirectory: options.location.dataDirectory,
          socketDirectory,
        });
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
  const { location, passwords } = options;
  const launched = await spawnServer(options, socketDirectory);
  const signal = async (name: NodeJS.Signals) => launched.kill(name);
  const startedMs = performance.now();
  let nextProgressMs = startedMs + progressEveryMs;
  while (!launched.isGone()) {
    const note = await readPostmasterFile(location.dataDirectory);
    if (note !== undefined && note.pid === launched.pid && note.status === "ready") {
      const socket = { socketDirectory, port: socketPort };
      const version = await serverVersion(socket, passwords, location).catch((error: unknown) => {
        launched.kill("SIGINT");
        throw error;
      });
      const { pid } = note;
      if (version !== undefined) return { pid, ...socket, version, signal, gone: launched.gone };
    }
    const nowMs = performance.now();
    if (nowMs > nextProgressMs) {
      options.log(`PostgreSQL is still starting: ${(await launched.lastWords()).split("\n").at(-1)}`);
      nextProgressMs += progressEveryMs;
    }
    if (nowMs - startedMs > startTimeoutMs) {
      launched.kill("SIGINT");
      throw startTimeout(options.logPath);
    }
    await pause(pollMs);
  }
  return launched.lastWords();
}

async function spawnServer({ location, binaries, settings, logPath }: LaunchOptions, socketDirectory: string) {
  const output = await openServerLog(logPath);
  const all = { ...settings, ...ownSettings(socketDirectory, socketPort) };
  const child = spawn(
    join(binaries.native, "bin", "postgres"),
    ["-D", location.dataDirectory, ...settingArguments(all)],
    // Its own process group: Ctrl-C in the terminal must not stop it before the service has drained.
    {
      env: cleanEnvironment(),
      cwd: "/",
      stdio: ["ignore", output.file.fd, output.file.fd],
      detached: true,
      ...location.account,
    },
  );
  let failure: Error | undefined;
  let isGone = false;
  const gone = new Promise<void>((resolve) => {
    const end = () => {
      isGone = true;
      resolve();
    };
    child.once("exit", end);
    child.on("error", (error) => {
      failure = error;
      if (child.pid === undefined) end();
    });
  });
  // The service stays alive by its own work; a program that merely forgot to stop PostgreSQL can still end.
  child.unref();
  await output.file.close();
  const launched: Launched = {
    pid: child.pid,
    gone,
    isGone: () => isGone,
    kill: (name) => void child.kill(name),
    lastWords: async () => failure?.message ?? serverLog(logPath).tail(output.sizeBytes),
  };
  return launched;
}

function startTimeout(logPath: string): PostgresStartError {
  return new PostgresStartError(
    "start_timeout",
    `PostgreSQL was not ready within ${startTimeoutMs / 60_000} minutes.`,
    `Read ${logPath}: a slow disk or a long recovery shows there; then start again.`,
  );
}
