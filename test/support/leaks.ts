import { createHook } from "node:async_hooks";
// When a library imports it for the first time, Node opens the process's own streams. They are opened before the watch.
import "node:process";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { afterAll } from "vitest";
import { forgetLastId } from "../../packages/server/src/ids.ts";

/**
 * Closing takes a few turns of the event loop, and a child process a moment to end: about 5 s of looks, which a paused
 * machine does not shorten.
 */
const looksMax = 500;
const lookEveryMs = 10;

/** Resources that keep a process alive if they are not closed, by Node's own names. */
const kinds: Readonly<Record<string, string>> = {
  TCPWRAP: "TCP socket",
  TCPSERVERWRAP: "TCP server",
  PIPEWRAP: "unix socket or pipe",
  PIPESERVERWRAP: "unix socket server",
  UDPWRAP: "UDP socket",
  PROCESSWRAP: "child process",
  WORKER: "worker thread",
  FSEVENTWRAP: "file watch",
  Timeout: "timer",
};

interface Resource {
  hasRef?(): boolean;
  getsockname?(into: { address?: string; port?: number }): number;
}

interface Opened {
  readonly kind: string;
  readonly resource: Resource;
  readonly at: Error;
}

interface OpenResources {
  /** One line for each that still keeps the process alive: what it is, and where it was opened. */
  list(): string[];
  /** Stops watching. */
  stop(): void;
}

const framesMax = 40;

// A setup file: Vitest runs it before each test file, and hooks registered here run after all hooks of that file.
// A process runs many files, so each starts with the state of a new process.
forgetLastId();
const resources = watchOpenResources();

afterAll(async () => {
  // Node reports in the next turn what was cleared in this one.
  await turn();
  let left = resources.list();
  for (let looks = 0; left.length > 0 && looks < looksMax; looks += 1) {
    await pause(lookEveryMs, undefined, { ref: false });
    left = resources.list();
  }
  // The next file of this process is watched by a hook of its own.
  resources.stop();
  if (left.length > 0) throw new Error(`this file left open:\n${left.join("\n")}`);
});

/**
 * Watches resources opened from now on. An unref'd resource (an idle keep-alive socket, a periodic check that ends with
 * the process) is no leak.
 */
function watchOpenResources(): OpenResources {
  const opened = new Map<number, Opened>();
  const hook = createHook({
    // Most resources of a test are promises, and they never keep a process alive.
    trackPromises: false,
    init(id, type, _trigger, resource) {
      const kind = kinds[type];
      if (kind !== undefined) opened.set(id, { kind, resource, at: stackHere() });
    },
    destroy(id) {
      opened.delete(id);
    },
  }).enable();
  return { list: () => [...opened.values()].filter(isLeft).map(describe), stop: () => void hook.disable() };
}

function stackHere(): Error {
  const limit = Error.stackTraceLimit;
  Error.stackTraceLimit = framesMax;
  const here = new Error();
  Error.stackTraceLimit = limit;
  return here;
}

function isLeft({ resource, at }: Opened): boolean {
  return resource.hasRef?.() === true && !isOfTheRunner(frames(at)[0]);
}

/** The runner's own: the time-out of the running hook, its channel to the main process. */
function isOfTheRunner(frame = ""): boolean {
  return /node_modules\/(vitest|@vitest|vite|tinypool|birpc)\//.test(frame);
}

function describe({ kind, resource, at }: Opened): string {
  const trace = frames(at);
  // A server opens its socket a turn after listen(), when nobody's code is on the stack: then its address has to do.
  const where = trace.find((frame) => !frame.includes("node_modules")) ?? trace[0] ?? "by Node itself";
  return `${kind}${addressOf(resource)}, opened ${where}`;
}

function addressOf(resource: Resource): string {
  const name: { address?: string; port?: number } = {};
  const known = resource.getsockname?.(name) === 0 && name.port !== undefined;
  return known ? ` ${name.address}:${name.port}` : "";
}

/** Without Node's own and this file's. */
function frames(error: Error): string[] {
  const lines = (error.stack ?? "").split("\n").map((line) => line.trim());
  return lines.filter((line) => line.startsWith("at ") && !/node:|<anonymous>|leaks\.ts/.test(line));
}
