import { type RestoredData, restoreBackup } from "../backups/restore.ts";
import { takeBackup } from "../backups/take.ts";
import { type ArchiveState, verifyBackup } from "../backups/verify.ts";
import { systemClock } from "../clock.ts";
import { readConfig } from "../config/config.ts";
import { PostgresRestores } from "../store/restores.ts";
import { readBackupSource } from "../store/schema/inspection.ts";
import { prepareSchema } from "../store/schema/migrate.ts";
import { withStore } from "./database.ts";
import { interruptible, ownVersion, unlessAborted } from "./process.ts";
import type { RunContext } from "./run.ts";

interface JsonOption {
  readonly json: boolean;
}

/** `paybell backup`. @returns 0 if it was taken and verified */
export function runBackup({ process }: RunContext, options: JsonOption & { readonly folder: string }): Promise<number> {
  const { env, stdout } = process;
  return interruptible(process, async (signal) => {
    const config = readConfig(env, ["databaseUrl"]);
    const databaseUrl = config.databaseUrl as string;
    const { path, manifest } = await takeBackup({
      folder: options.folder,
      url: config.backupDatabaseUrl ?? databaseUrl,
      env,
      version: ownVersion(),
      source: () => unlessAborted(signal, readBackupSource(databaseUrl)),
      signal,
    });
    const warning = manifest.walArchived
      ? []
      : ["The server's log is not archived (archive_mode is off): this backup restores no time after its end."];
    const told = [`Took and verified ${path}, of ${manifest.startedAt} to ${manifest.endedAt}.`, ...warning];
    stdout.write(options.json ? `${JSON.stringify({ path, ...manifest }, null, 2)}\n` : text(told));
    return 0;
  });
}

/** `paybell verify`. @returns 0 if the backup can be restored */
export function runVerify(
  { process }: RunContext,
  { backup, wal, json }: JsonOption & { readonly backup: string; readonly wal?: string | undefined },
): Promise<number> {
  const { env, stdout } = process;
  return interruptible(process, async (signal) => {
    const { manifest, archive } = await verifyBackup(backup, wal, env, signal);
    const told = [`Every file is as it was written: ${manifest.name}, of PostgreSQL ${manifest.postgres}.`];
    if (archive !== undefined) told.push(archiveLine(archive), ...timelineLines(archive));
    stdout.write(json ? `${JSON.stringify({ ...manifest, archive: archive ?? null }, null, 2)}\n` : text(told));
    return 0;
  });
}

function archiveLine({ segments, first, last, lastAtMs }: ArchiveState): string {
  const writtenAt = new Date(lastAtMs).toISOString();
  return `The archive has no gap: ${segments} segments from ${first} to ${last}, written at ${writtenAt}.`;
}

/** A second restore, to a later time, ends where the first began to write, and looks as if all went well. */
function timelineLines({ laterTimelines }: ArchiveState): string[] {
  const names = laterTimelines.join(", ");
  if (names === "") return [];
  return [
    `The archive also has what an earlier restore, or a promotion, began: ${names}. PostgreSQL goes over to the last of ` +
      "them where it begins, whatever --to says. To restore what the lost server wrote after that, first move all files " +
      "whose names begin so out of the archive.",
  ];
}

export interface RestoreArguments extends JsonOption {
  readonly backup: string;
  readonly into: string;
  readonly wal?: string | undefined;
  readonly to?: string | undefined;
}

/** `paybell restore`. @returns 0 if the data directory is there */
export function runRestore({ process }: RunContext, options: RestoreArguments): Promise<number> {
  const { env, stdout } = process;
  return interruptible(process, async (signal) => {
    const { backup, into, wal, to, json } = options;
    const restored = await restoreBackup({ backup, into, walFolder: wal, to, env, nowMs: systemClock.nowMs(), signal });
    stdout.write(json ? `${JSON.stringify(restored, null, 2)}\n` : text(restoredLines(restored)));
    return 0;
  });
}

function restoredLines({ name, into, manifest, archive }: RestoredData): string[] {
  return [
    `${into} has the data of ${manifest.name}, as the restore ${name}.`,
    ...(archive === undefined ? [] : timelineLines(archive)),
    `Start PostgreSQL ${manifest.postgresMajor} on it: it replays the log, then takes connections.`,
    "Then start the service: what was pending is held. `paybell restore reconcile` shows it.",
  ];
}

/** `paybell restore hold`. @returns 0 if what was pending is parked */
export function runRestoreHold({ process }: RunContext, { json }: JsonOption): Promise<number> {
  const { env, stdout } = process;
  return interruptible(process, async (signal) => {
    const config = readConfig(env, ["databaseUrl"]);
    const databaseUrl = config.databaseUrl as string;
    await unlessAborted(signal, prepareSchema({ databaseUrl, ownerUrl: config.migrationDatabaseUrl }));
    const nowMs = systemClock.nowMs();
    const restore = await withStore(databaseUrl, (database) =>
      unlessAborted(signal, new PostgresRestores(database).hold(new Date(nowMs).toISOString(), nowMs)),
    );
    const told = [`${restore.held} notifications that were pending are held. Start the service, and reconcile.`];
    stdout.write(json ? `${JSON.stringify({ name: restore.name, held: restore.held })}\n` : text(told));
    return 0;
  });
}

function text(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}
