import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { homeNotPermitted, PostgresStartError } from "./start-error.ts";

export interface ServiceLock {
  release(): Promise<void>;
}

/** SQLite's result codes. */
const busy = 5;
/** Another claim on the home lasts for a millisecond when it only looks whether the home is free. */
const waitMs = 100;

/**
 * Acquires the home for this process; a second service on it gets `home_in_use`, naming the first. The lock is SQLite's
 * on an empty file: the operating system ends it with its process, so that nothing has to be taken over from a dead one.
 */
export async function acquireServiceLock(home: string): Promise<ServiceLock> {
  const [path, holder] = [lockPath(home), join(home, "service.pid")];
  const lock = openLock(path);
  try {
    // Nothing is written, so no journal lies beside it.
    lock.exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE");
  } catch (error) {
    lock.close();
    if (!(error instanceof Error && "errcode" in error && error.errcode === busy)) throw homeNotPermitted(path, error);
    throw inUse(home, (await readFile(holder, "utf8").catch(() => "unknown")).trim());
  }
  try {
    await writeFile(holder, `${process.pid}\n`, { mode: 0o600 });
  } catch (error) {
    lock.close();
    throw error;
  }
  return {
    async release() {
      if (!lock.isOpen) return;
      await rm(holder, { force: true });
      lock.close();
    },
  };
}

/** @throws PostgresStartError `home_in_use`, without making a home that does not exist */
export async function requireFreeHome(home: string): Promise<void> {
  if (existsSync(lockPath(home))) await (await acquireServiceLock(home)).release();
}

function openLock(path: string): DatabaseSync {
  try {
    return new DatabaseSync(path, { timeout: waitMs });
  } catch (error) {
    throw homeNotPermitted(path, error);
  }
}

function lockPath(home: string): string {
  return join(home, "service.lock.sqlite");
}

function inUse(home: string, pid: string): PostgresStartError {
  return new PostgresStartError(
    "home_in_use",
    `Another Paybell (process ${pid}) is using ${home}.`,
    `Stop process ${pid} first, or give this one its own home with PAYBELL_HOME; ` +
      "several instances share one PostgreSQL through DATABASE_URL.",
  );
}
