import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";

/** The operating system's user that PostgreSQL runs as, when we are root and it may not be. */
export interface Account {
  readonly uid: number;
  readonly gid: number;
}

/** The command line of a living process, its arguments separated by spaces; empty when it has none that we may see. */
export async function commandLine(pid: number): Promise<string> {
  if (process.platform === "linux") {
    const raw = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
    return raw.replaceAll("\0", " ");
  }
  const ps = promisify(execFile)("ps", ["-ww", "-o", "command=", "-p", String(pid)], { env: cleanEnvironment() });
  return `${(await ps.catch(() => ({ stdout: "" }))).stdout.trim()} `;
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

/** Runs a program to its end, as `account` (then without any supplementary group), with the clean environment. */
export async function runTool(
  program: string,
  args: readonly string[],
  account: Account | undefined,
): Promise<ToolResult> {
  const options = { env: cleanEnvironment(), cwd: "/", detached: true, ...account };
  const child = spawn(program, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const [output, errors] = [text(child.stdout), text(child.stderr)];
  try {
    const [exitCode] = (await once(child, "close")) as [number | null];
    return { exitCode: exitCode ?? undefined, output: (await output) + (await errors) };
  } catch (error) {
    return { exitCode: undefined, output: (error as Error).message };
  }
}
