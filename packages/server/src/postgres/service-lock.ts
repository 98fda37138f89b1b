import { link, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { identify, isAlive, type ProcessIdentity } from "./process.ts";
import { PostgresStartError } from "./start-error.ts";

export interface ServiceLock {
  release(): Promise<void>;
}

const tiesMax = 5;
const tiePauseMs = 20;

/**
 * Acquires the home for this process; a second service on it gets `home_in_use`, naming the first. Each claimant has a
 * file, named by its process: it writes its own, then looks for others. Two concurrent claimants see each other,
 * whatever the order on disk, so both can never hold the home; the older process tries again. A single file would have
 * to be deleted to be taken over from a dead process, and the deletion could hit a living one's.
 */
export async function acquireServiceLock(home: string, self?: ProcessIdentity): Promise<ServiceLock> {
  const claimant = self ?? (await identify(process.pid));
  if (claimant === undefined) throw new Error("this process cannot see itself in the process table");
  for (let tie = 0; ; tie += 1) {
    const file = await claim(home, claimant);
    const [rival] = await livingHolders(home, claimant);
    if (rival === undefined) return { release: () => rm(file, { force: true }) };
    await rm(file, { force: true });
    if (isYounger(claimant, rival) || tie === tiesMax) throw inUse(home, rival.pid);
    await pause(tiePauseMs);
  }
}

/** The living processes that hold this home, other than `self`; what the dead left is removed. */
export async function livingHolders(home: string, self?: ProcessIdentity): Promise<ProcessIdentity[]> {
  const holders: ProcessIdentity[] = [];
  for (const name of await readdir(folder(home)).catch(() => [])) {
    if (!name.endsWith(".lock")) continue;
    const file = join(folder(home), name);
    const holder = parse(await readFile(file, "utf8").catch(() => ""));
    if (holder === undefined || (holder.pid === self?.pid && holder.startedAt === self.startedAt)) continue;
    if (await isAlive(holder)) holders.push(holder);
    // Its name contains the start time of a dead process, so no living one can have written it again.
    else await rm(file, { force: true });
  }
  return holders;
}

async function claim(home: string, claimant: ProcessIdentity): Promise<string> {
  await mkdir(folder(home), { recursive: true, mode: 0o700 });
  const file = join(folder(home), `${claimant.pid}-${claimant.startedAt.replaceAll(/[^0-9a-zA-Z]/g, "-")}.lock`);
  const draft = `${file}.${process.hrtime.bigint()}`;
  try {
    // Linked when complete: a partial claim is never visible.
    await writeFile(draft, JSON.stringify(claimant), { mode: 0o600 });
    await link(draft, file);
    return file;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "EEXIST") throw inUse(home, claimant.pid);
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

function folder(home: string): string {
  return join(home, "service.lock");
}

function parse(text: string): ProcessIdentity | undefined {
  try {
    const { pid, startedAt } = JSON.parse(text);
    return typeof pid === "number" && typeof startedAt === "string" ? { pid, startedAt } : undefined;
  } catch {
    return undefined;
  }
}

function inUse(home: string, pid: number): PostgresStartError {
  return new PostgresStartError(
    "home_in_use",
    `Another Paybell (process ${pid}) is using ${home}.`,
    `Stop process ${pid} first, or give this one its own home with PAYBELL_HOME; ` +
      "several instances share one PostgreSQL through DATABASE_URL.",
  );
}

/** Any order will do, as long as both sides of a tie agree on it. */
function isYounger(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return one.startedAt === other.startedAt ? one.pid > other.pid : one.startedAt > other.startedAt;
}
