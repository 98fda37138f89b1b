import { getCompileCacheDir } from "node:module";
import { dirname } from "node:path";
import { type ResourceLimits, Worker } from "node:worker_threads";
import type { TroubleLog } from "../../log.ts";

export interface ThreadOptions<Message> {
  /** The module that the thread runs. */
  readonly entry: URL;
  readonly name: string;
  /** Its name in the log: "a delivery worker". */
  readonly logName: string;
  readonly data?: unknown;
  /** Variables of the process's environment that it may read. */
  readonly environment?: Readonly<Record<string, string>>;
  readonly limits: ResourceLimits;
  readonly log: TroubleLog;
  readonly onMessage: (message: Message) => void;
  /** Called once, when it runs nothing more. */
  readonly onExit: (code: number) => void;
}

/** Starts a thread. A message of its that cannot be read ends it, because nobody knows what it said. */
export function startThread<Message>(options: ThreadOptions<Message>): Worker {
  const { entry, name, logName, data, environment, limits, log, onMessage, onExit } = options;
  const thread = new Worker(entry, {
    name,
    env: { ...compiledCode(), ...environment },
    workerData: data,
    resourceLimits: limits,
  });
  thread.on("message", onMessage);
  thread.on("error", (error) => log.error({ err: error }, `${logName} failed`));
  thread.on("messageerror", () => void thread.terminate());
  thread.on("exit", onExit);
  return thread;
}

/**
 * The folder of compiled code, if there is one. Without it a thread strips the types of everything it loads again, and
 * uses 25 MB for that.
 */
function compiledCode(): Record<string, string> {
  // Node appends a folder of its own version to the configured one.
  const folder = getCompileCacheDir();
  return folder === undefined ? {} : { NODE_COMPILE_CACHE: dirname(folder) };
}
