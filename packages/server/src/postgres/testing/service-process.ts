import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";

export interface ServiceReport {
  readonly pid: number;
  readonly connectionString: string;
  readonly superuserConnectionString: string;
  readonly socketDirectory: string;
  readonly code?: string;
  readonly message?: string;
  readonly remedy?: string;
}

export interface SpawnedService {
  readonly pid: number;
  /** Its report of the start; rejects with its last output without one. */
  readonly report: Promise<ServiceReport>;
  stop(): Promise<void>;
  /** `kill -9`: nothing of it runs any more, its PostgreSQL does. */
  kill(): Promise<void>;
}

export function spawnService(options: {
  home: string;
  systemDirectory?: string;
  uid?: number;
  gid?: number;
  environment?: Record<string, string>;
}): SpawnedService {
  const { home, systemDirectory, uid, gid, environment } = options;
  const args = [home, ...(systemDirectory === undefined ? [] : [systemDirectory])];
  const child = spawn(process.execPath, [join(import.meta.dirname, "service.fixture.ts"), ...args], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    cwd: "/",
    stdio: ["pipe", "pipe", "pipe"],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  const exited = once(child, "exit");
  let words = "";
  child.stderr.on("data", (chunk) => {
    words += chunk;
  });
  const report = new Promise<ServiceReport>((resolve, reject) => {
    createInterface(child.stdout).once("line", (line) => resolve(JSON.parse(line)));
    child.once("close", () => reject(new Error(`the service ended without a report: ${words}`)));
  });
  // A test that kills the service does not wait for its report.
  report.catch(() => undefined);
  const ended = async () => void (await exited);
  return {
    pid: child.pid ?? 0,
    report,
    stop: () => {
      // It may have ended by itself: its exit code says how.
      child.stdin.on("error", () => undefined);
      child.stdin.end("stop\n");
      return ended();
    },
    kill: () => {
      child.kill("SIGKILL");
      return ended();
    },
  };
}
