import { execFile, spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
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
