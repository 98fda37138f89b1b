import { execFile } from "node:child_process";
import { access, constants } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { BackupError } from "./manifest.ts";

const run = promisify(execFile);

export type ProgramName = "pg_basebackup" | "pg_verifybackup";

/** The folders of the programs of each version on Debian, Red Hat and PostgreSQL's own images, then the PATH. */
function foldersOf(major: number, path: string): string[] {
  return [
    `/usr/lib/postgresql/${major}/bin`,
    `/usr/pgsql-${major}/bin`,
    ...path.split(delimiter).filter((folder) => folder !== ""),
  ];
}

/**
 * Finds a program of PostgreSQL's own of the server's major version: the data of another one are refused by it.
 *
 * @throws BackupError if there is none
 */
export async function findProgram(name: ProgramName, major: number, env: NodeJS.ProcessEnv): Promise<string> {
  const others: number[] = [];
  for (const folder of foldersOf(major, env["PATH"] ?? "")) {
    const path = join(folder, name);
    const isThere = await access(path, constants.X_OK).then(
      () => true,
      () => false,
    );
    if (!isThere) continue;
    const found = await majorOf(path, env);
    if (found === major) return path;
    if (found !== undefined) others.push(found);
  }
  const seen = others.length === 0 ? "" : `, only that of ${[...new Set(others)].join(" and ")}`;
  throw new BackupError(
    `There is no ${name} of PostgreSQL ${major} on this machine${seen}.`,
    `Install PostgreSQL ${major}'s programs (Debian: postgresql-${major}), or put their folder on the PATH.`,
  );
}

async function majorOf(path: string, env: NodeJS.ProcessEnv): Promise<number | undefined> {
  const { stdout } = await run(path, ["--version"], { env: cleaned(env) }).catch(() => ({ stdout: "" }));
  const [, major] = /\(PostgreSQL\) (\d+)/.exec(stdout) ?? [];
  return major === undefined ? undefined : Number(major);
}

/**
 * Runs a program to its end.
 *
 * @param env of this process; ours of PAYBELL_ and DATABASE_URL are not passed on
 * @param signal ends it
 * @throws BackupError with its last words
 */
export async function runProgram(
  path: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const running = run(path, args, { env: cleaned(env), maxBuffer: 64 * 1024 * 1024 });
  // Node's own option would not wait for its end: it might still write where we then remove.
  const end = () => void running.child.kill();
  signal.addEventListener("abort", end);
  try {
    await running;
  } catch (error) {
    const { stderr = "", message } = error as Error & { stderr?: string };
    const words = stderr.trim() === "" ? message : stderr.trim().split("\n").slice(-5).join("\n");
    throw new BackupError(`${path} failed: ${words}`, "");
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** The master key and the operators' token are none of PostgreSQL's business. */
function cleaned(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return Object.fromEntries(
    Object.entries(env).filter(([name]) => !name.startsWith("PAYBELL_") && name !== "DATABASE_URL"),
  );
}
