import type { Log } from "../log.ts";

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

export function stopSignalsOf(process: NodeJS.Process): StopSignals {
  const first = Promise.withResolvers<NodeJS.Signals>();
  const second = Promise.withResolvers<NodeJS.Signals>();
  let seen = 0;
  const onSignal = (signal: NodeJS.Signals) => {
    seen += 1;
    (seen === 1 ? first : second).resolve(signal);
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
export const interruptedCode = 130;

/** Waits for the work, but no longer than to the signal: what is left of it ends with the process. */
export async function unlessAborted<Result>(signal: AbortSignal, work: Promise<Result>): Promise<Result> {
  const aborted = Promise.withResolvers<never>();
  signal.addEventListener("abort", () => aborted.reject(signal.reason), { once: true });
  if (signal.aborted) aborted.reject(signal.reason);
  return Promise.race([work, aborted.promise]);
}
