import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Cleanup } from "./environment.ts";
import { treeCpuMs } from "./processor.ts";

export interface StartResult {
  /** From `npm start` to its ready line, with an empty home: the database is made first. */
  readonly firstMs: number;
  /** A second start, on the existing home. */
  readonly againMs: number;
  /** Percent of one core, PostgreSQL included, while nothing happens; undefined where it cannot be read. */
  readonly idlePercent: number | undefined;
}

const readyLine = /ready in /;
/** Work left over from the start, such as plans and garbage, is not part of idling. */
const settleMs = 10_000;
const idleMs = 20_000;
const readyWithinMs = 60_000;

/** `npm start` as a newcomer types it, twice. */
export async function measureStart(folder: string, cleanup: Cleanup): Promise<StartResult> {
  const home = join(folder, "start");
  const first = await startOnce(home, cleanup);
  await stop(first.child);
  const again = await startOnce(home, cleanup);
  await new Promise((resolve) => setTimeout(resolve, settleMs));
  const before = await groupCpuMs(again.child);
  await new Promise((resolve) => setTimeout(resolve, idleMs));
  const after = await groupCpuMs(again.child);
  await stop(again.child);
  const idlePercent = before === undefined || after === undefined ? undefined : ((after - before) / idleMs) * 100;
  return { firstMs: first.readyMs, againMs: again.readyMs, idlePercent };
}

async function startOnce(home: string, cleanup: Cleanup) {
  const env = { ...process.env, PAYBELL_HOME: home, PAYBELL_PORT: String(await freePort()) };
  const startedMs = performance.now();
  // A group of its own, so that Ctrl-C can be sent to npm and all that it started.
  const child = spawn("npm", ["start"], {
    cwd: join(import.meta.dirname, ".."),
    env,
    detached: true,
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanup.add(() => stop(child));
  const timer = setTimeout(() => signal(child, "SIGKILL"), readyWithinMs);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      if (!readyLine.test(line)) continue;
      const readyMs = performance.now() - startedMs;
      child.stdout.resume();
      return { child, readyMs };
    }
    throw new Error("npm start ended before it was ready.");
  } finally {
    clearTimeout(timer);
  }
}

/** npm, its shell, the service, PostgreSQL: all descendants of the child. */
async function groupCpuMs({ pid }: ChildProcess): Promise<number | undefined> {
  return pid === undefined ? undefined : treeCpuMs(pid);
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  signal(child, "SIGINT");
  await exited;
}

function signal({ pid }: ChildProcess, name: NodeJS.Signals): void {
  try {
    if (pid !== undefined) process.kill(-pid, name);
  } catch (error) {
    // It ended on its own in between.
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
