import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { commandLine } from "./process-identity.ts";

/** The content of `postmaster.pid`: the server's own record in its data directory. */
export interface PostmasterFile {
  readonly pid: number;
  readonly socketDirectory: string;
  readonly port: number;
  /** `starting`, `stopping`, `ready`, `standby`, or empty before the first. */
  readonly status: string;
}

/** Undefined when there is none, or when it is not written to its end yet. */
export async function readPostmasterFile(dataDirectory: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(path(dataDirectory), "utf8").catch(() => "");
  // Lines: pid, data directory, start (epoch seconds), port, socket folder, TCP address, shared memory, status.
  const lines = text.split("\n");
  const [pid, port, socketDirectory] = [Number(lines[0]), Number(lines[3]), lines[4]];
  if (!Number.isSafeInteger(pid) || pid <= 0 || !Number.isSafeInteger(port) || socketDirectory === undefined)
    return undefined;
  return { pid, port, socketDirectory, status: (lines[7] ?? "").trim() };
}

/** Whether that process is a PostgreSQL server on this very data directory: the number may have been reused. */
export async function isPostmasterOf(pid: number, dataDirectory: string): Promise<boolean> {
  const command = await commandLine(pid);
  return command !== undefined && / -D /.test(command) && `${command} `.includes(` -D ${dataDirectory} `);
}

/**
 * Takes a dead server's number out of the file, when another program wears it now and PostgreSQL would therefore refuse
 * to start. The file stays, with our own number: PostgreSQL knows its parent's for stale, and still reads the line of
 * the shared memory, to make sure that no process of the dead server is left. Deleting the file would skip that check.
 */
export async function disownPostmasterFile(dataDirectory: string): Promise<void> {
  const text = await readFile(path(dataDirectory), "utf8");
  await writeFile(path(dataDirectory), [String(process.pid), ...text.split("\n").slice(1)].join("\n"));
}

function path(dataDirectory: string): string {
  return join(dataDirectory, "postmaster.pid");
}
