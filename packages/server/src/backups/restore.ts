import { constants } from "node:fs";
import { appendFile, chmod, cp, lchown, mkdir, readdir, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { BackupError, type BackupManifest, dataFolder } from "./manifest.ts";
import { type ArchiveState, verifyBackup } from "./verify.ts";

export interface RestoreOptions {
  /** A folder that `paybell backup` made. */
  readonly backup: string;
  /** The data directory to make: missing or empty. */
  readonly into: string;
  /** The archive of the server's log; undefined: the end of the backup is restored. */
  readonly walFolder: string | undefined;
  /** Until when, ISO 8601; undefined: to the end of the archive. */
  readonly to: string | undefined;
  readonly env: NodeJS.ProcessEnv;
  readonly nowMs: number;
  /** Ends it, with nothing left in the folder. */
  readonly signal: AbortSignal;
}

export interface RestoredData {
  /** The restore's name, by which the database is known to be a restored one. */
  readonly name: string;
  readonly into: string;
  readonly manifest: BackupManifest;
  /** Undefined if no archive was named. */
  readonly archive: ArchiveState | undefined;
}

/**
 * Makes a data directory of a backup. PostgreSQL replays the log when it is started on it, and begins a new timeline.
 * It tells every connection the name of the restore, so that the first instance holds what was pending.
 *
 * @throws BackupError
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoredData> {
  const { backup, env, nowMs, to, signal } = options;
  const into = resolve(options.into);
  const walFolder = options.walFolder === undefined ? undefined : resolve(options.walFolder);
  const { manifest, archive } = await verifyBackup(backup, walFolder, env, signal);
  requireReachable(manifest, to, archive);
  const owner = await ownerOf(into);
  const name = new Date(nowMs).toISOString();
  await mkdir(into, { recursive: true, mode: 0o700 });
  try {
    await chmod(into, 0o700);
    await copyData(join(backup, dataFolder), into, signal);
    // That of a standby: PostgreSQL would wait for the primary, and never promote.
    await rm(join(into, "standby.signal"), { force: true });
    await appendFile(join(into, "postgresql.auto.conf"), recoverySettings({ name, walFolder, to }), { flush: true });
    await writeFile(join(into, "recovery.signal"), "", { mode: 0o600, flush: true });
    if (owner !== undefined) await giveTo(owner, into);
  } catch (error) {
    for (const entry of await readdir(into)) await rm(join(into, entry), { recursive: true, force: true });
    throw error;
  }
  return { name, into, manifest, archive };
}

/** The archive may be on another machine, whose clock is behind. */
const clocksApartMs = 60_000;

function requireReachable(
  { endedAt }: BackupManifest,
  to: string | undefined,
  archive: ArchiveState | undefined,
): void {
  if (to === undefined) return;
  if (archive === undefined) {
    throw new BackupError("A time is restored from the archive of the server's log.", "Name its folder with --wal.");
  }
  if (Date.parse(to) < Date.parse(endedAt)) {
    throw new BackupError(`This backup ended at ${endedAt}, after ${to}.`, "Restore an earlier backup to that time.");
  }
  // On a later timeline the log may go on for longer.
  const { lastAtMs, laterTimelines } = archive;
  if (laterTimelines.length === 0 && Date.parse(to) > lastAtMs + clocksApartMs) {
    throw new BackupError(
      `The archive was last written at ${new Date(lastAtMs).toISOString()}, before ${to}: PostgreSQL would not start.`,
      "Name a time before that (Z is UTC), or leave --to out to restore all of the archive.",
    );
  }
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** PostgreSQL does not run as root: then the data belong to the owner of the folder. */
async function ownerOf(into: string): Promise<Owner | undefined> {
  const found = await stat(into).catch(() => undefined);
  const entries = found === undefined ? [] : await readdir(into);
  if (entries.length > 0) {
    const remedy = "Name another folder. Move the old data away, and keep them until the new ones are reconciled.";
    throw new BackupError(`${into} is not empty.`, remedy);
  }
  if (process.getuid?.() !== 0) return undefined;
  if (found !== undefined && found.uid !== 0) return found;
  throw new BackupError(
    `As root, ${into} has to be an empty folder of PostgreSQL's user, who gets the data.`,
    `Run it as that user, or make the folder first: install -d -m 0700 -o postgres -g postgres ${into}`,
  );
}

/** PG_VERSION last: PostgreSQL refuses a folder without it, so that half a copy is never started. */
async function copyData(data: string, into: string, signal: AbortSignal): Promise<void> {
  const last = "PG_VERSION";
  for (const entry of [...(await readdir(data)).filter((name) => name !== last), last]) {
    await cp(join(data, entry), join(into, entry), {
      recursive: true,
      errorOnExist: true,
      force: false,
      mode: constants.COPYFILE_FICLONE,
      filter: () => !signal.aborted,
    });
    signal.throwIfAborted();
  }
}

async function giveTo(owner: Owner, path: string): Promise<void> {
  await lchown(path, owner.uid, owner.gid);
  for (const entry of await readdir(path, { recursive: true })) await lchown(join(path, entry), owner.uid, owner.gid);
}

/** The settings of the recovery, at the end of the file: they replace those that an earlier restore may have left. */
export function recoverySettings(restore: {
  readonly name: string;
  readonly walFolder: string | undefined;
  readonly to: string | undefined;
}): string {
  const { name, walFolder, to = "" } = restore;
  // Without an archive the log is what the backup has with it.
  const command = walFolder === undefined ? "false" : `cp ${shellQuoted(`${walFolder}/%f`)} "%p"`;
  const settings = {
    restore_command: command,
    // PostgreSQL takes an offset here, and no abbreviation such as Z.
    recovery_target_time: to.replace("T", " ").replace("Z", "+00"),
    recovery_target_action: "promote",
    recovery_target_timeline: "latest",
    "paybell.restored": name,
  };
  // In its configuration both have another one before them.
  const lines = Object.entries(settings).map(([key, value]) => `${key} = '${value.replaceAll(/['\\]/g, "$&$&")}'`);
  return `\n# By paybell restore:\n${lines.join("\n")}\n`;
}

/** PostgreSQL replaces %f and %p, and reads %% as %. */
function shellQuoted(path: string): string {
  const folder = path.slice(0, -"%f".length).replaceAll("%", "%%").replaceAll("'", "'\\''");
  return `'${folder}%f'`;
}
