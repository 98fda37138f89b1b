import { readFileSync } from "node:fs";
import { mkdir, rename, writeFile } from "node:fs/promises";
import { dirname } from "node:path";
import { ConfigError } from "../config/config.ts";
import { firstFailure } from "../errors.ts";
import type { Log } from "../telemetry/log.ts";

/** The signals that end a service in order: Ctrl-C, a supervisor's stop, a closed terminal. */
const stopSignals = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export interface StopSignals {
  /** Resolves at the first signal. */
  readonly first: Promise<NodeJS.Signals>;
  /** Resolves at the second one: the user does not want to wait. */
  readonly second: Promise<NodeJS.Signals>;
  /** Restores the signals' default behaviour. */
  release(): void;
}

/** npm passes on the Ctrl-C that the terminal has sent to its script already: the same signal so soon is the same key. */
const sameKeyMs = 500;

export function stopSignalsOf(process: NodeJS.Process, nowMs = () => performance.now()): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let seen: { readonly signal: NodeJS.Signals; readonly atMs: number } | undefined;
  const onSignal = (signal: NodeJS.Signals) => {
    if (seen === undefined) first.resolve(signal);
    else if (signal !== seen.signal || nowMs() - seen.atMs >= sameKeyMs) second.resolve(signal);
    seen ??= { signal, atMs: nowMs() };
  };
  for (const signal of stopSignals) process.on(signal, onSignal);
  return {
    first: first.promise,
    second: second.promise,
    release() {
      for (const signal of stopSignals) process.off(signal, onSignal);
    },
  };
}

/**
 * An error that nothing handles is logged as every other, without secrets, and ends the process: its supervisor starts
 * another one, which finds everything in the database.
 */
export function endAtUnhandled(process: NodeJS.Process, log: Pick<Log, "fatal">): void {
  process.once("uncaughtException", (error, origin) => {
    log.fatal({ err: error, origin }, "an error was not handled: the process ends");
    process.exit(1);
  });
}

/** The exit code of a command that a signal interrupted. */
const interruptedCode = 130;

/** Waits for the work, but no longer than to the signal: what is left of it ends with the process. */
export async function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
  if (signal.aborted) aborted.reject(signal.reason);
  return Promise.race([work, aborted.promise]);
}

/** An error at startup is printed as sentences, not as a stack; with --json in the form of every other command. */
export async function guarded({ argv, stdout, stderr }: NodeJS.Process, run: () => Promise<number>): Promise<number> {
  // If the terminal closes, only output is lost. Ending at once would leave PostgreSQL running.
  for (const stream of [stdout, stderr]) stream.on("error", () => undefined);
  try {
    return await run();
  } catch (error) {
    const text = explain(error);
    stderr.write(`${argv.includes("--json") ? jsonOf(error, text) : text}\n`);
    return 1;
  }
}

function jsonOf(error: unknown, text: string): string {
  const code = error instanceof ConfigError ? "bad_configuration" : "failed";
  return JSON.stringify({ error: { code, message: text.replaceAll(/^paybell: /gm, "") } }, null, 2);
}

/** A command that a signal interrupts. It first undoes what it began; a second signal does not wait for that. */
export function interruptible(process: NodeJS.Process, run: (signal: AbortSignal) => Promise<number>): Promise<number> {
  return guarded(process, async () => {
    const signals = stopSignalsOf(process);
    const interruption = new AbortController();
    void signals.first.then(() => interruption.abort());
    try {
      return await Promise.race([run(interruption.signal), signals.second.then(() => interruptedCode)]);
    } catch (error) {
      if (!interruption.signal.aborted) throw error;
      return interruptedCode;
    } finally {
      signals.release();
    }
  });
}

interface Explained {
  readonly code: string;
  readonly port: number;
  readonly setting: string;
  readonly remedy: string;
}

function explain(error: unknown): string {
  if (error instanceof ConfigError) return error.problems.map((problem) => `paybell: ${problem}`).join("\n");
  const { message, code, port, setting = "PAYBELL_PORT", remedy }: Error & Partial<Explained> = firstFailure(error);
  if (code === "EADDRINUSE") {
    return `paybell: port ${port ?? ""} is in use by another program. Stop it, or choose another with ${setting}.`;
  }
  if (code === "EACCES" && port !== undefined) {
    return `paybell: port ${port} needs special rights. Choose one above 1023 with ${setting}.`;
  }
  return remedy === undefined ? `paybell: ${message}` : `paybell: ${message} ${remedy}`;
}

/** The version of this package. */
export function ownVersion(): string {
  const { version } = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"));
  return String(version);
}

/**
 * Writes the file, and its folder, never readable by others. A process that is killed leaves the old file or the new
 * one.
 */
export async function writePrivately(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const draft = `${path}.${process.pid}`;
  await writeFile(draft, text, { mode: 0o600 });
  await rename(draft, path);
}
