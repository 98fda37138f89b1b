import { spawn } from "node:child_process";

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
