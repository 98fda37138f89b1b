import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll } from "vitest";
import { commandLine } from "../process.ts";

export const isRoot = process.getuid?.() === 0;

/**
 * For tests that kill processes and not the machine: what is written survives in the operating system's memory. On a
 * busy disk making a data directory took 8 s with the sync, 1 s without.
 */
export const withoutSync = { fsync: "off" } as const;

/** A folder for one test file, removed after it. PostgreSQL's own user may pass through it. */
export async function temporaryFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), "paybell-postgres-"));
  await chmod(folder, 0o711);
  afterAll(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

/** A zombie, which nobody has reaped yet, has no command line any more. */
export async function isRunning(pid: number): Promise<boolean> {
  return (await commandLine(pid)).trim() !== "";
}

export async function queryOnce<Row extends object>(connectionString: string, sql: string): Promise<Row[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}
