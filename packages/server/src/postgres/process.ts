import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";

/**
 * A living process, distinguished from a later one with the same number by its start time. `startedAt` is opaque: equal
 * only for the same process on the same boot of the machine.
 */
export interface ProcessIdentity {
  readonly pid: number;
  readonly startedAt: string;
}

/** The identity of a living process, undefined when none (a zombie is none: it holds nothing any more). */
export async function identify(pid: number): Promise<ProcessIdentity | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined;
  const startedAt = process.platform === "linux" ? await startOnLinux(pid) : await startByPs(pid);
  return startedAt === undefined ? undefined : { pid, startedAt };
}

export async function isAlive(process: ProcessIdentity): Promise<boolean> {
  return (await identify(process.pid))?.startedAt === process.startedAt;
}

/** The command line of a living process, arguments apart by spaces; undefined when it has none that we may see. */
export async function commandLine(pid: number): Promise<string | undefined> {
  if (process.platform !== "linux") return ps(pid, "command=");
  const raw = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return raw === "" ? undefined : raw.replaceAll("\0", " ").trimEnd();
}

async function startOnLinux(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The program's name may hold spaces and parentheses; the fields begin behind its last one. First the state, 20th the
  // start.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const [state, ticks] = [fields[0], fields[19]];
  if (ticks === undefined || state === "Z" || state === "X") return undefined;
  // Ticks count from boot, so after a reboot another process may show the same.
  const boot = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(() => "");
  return `${boot.trim()}/${ticks}`;
}

async function startByPs(pid: number): Promise<string | undefined> {
  const state = await ps(pid, "stat=");
  return state === undefined || state.startsWith("Z") ? undefined : ps(pid, "lstart=");
}

async function ps(pid: number, column: string): Promise<string | undefined> {
  const environment = { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" };
  const result = await promisify(execFile)("ps", ["-ww", "-o", column, "-p", String(pid)], { env: environment }).catch(
    () => undefined,
  );
  const text = result?.stdout.trim() ?? "";
  return text === "" ? undefined : text;
}

/** The operating system's user that PostgreSQL runs as, when we are root and it may not be. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/**
 * The whole environment of PostgreSQL and its tools. Ours holds the master key and DATABASE_URL: none of it is passed
 * on. TZ saves initdb the search through every time zone file.
 */
export function cleanEnvironment(): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "/usr/local/bin:/usr/bin:/bin", LANG: "C", TZ: "UTC" };
}

export interface ToolResult {
  /** Undefined when the program could not be started or was ended by a signal. */
  readonly exitCode: number | undefined;
  readonly output: string;
}

const outputCharsMax = 64 * 1024;

/** Runs a program to its end, as `account` (then without any supplementary group), with the clean environment. */
export function runTool(program: string, args: readonly string[], account: Account | undefined): Promise<ToolResult> {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      env: cleanEnvironment(),
      cwd: "/",
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
      ...account,
    });
    let output = "";
    const collect = (chunk: Buffer) => {
      output = (output + chunk.toString("utf8")).slice(-outputCharsMax);
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    child.once("error", (error) => resolve({ exitCode: undefined, output: `${output}${error.message}` }));
    child.once("close", (exitCode) => resolve({ exitCode: exitCode ?? undefined, output }));
  });
}
