import { join } from "node:path";
import { BackupError } from "./backup-error.ts";
import { type BackupManifest, dataFolder, readManifest } from "./manifest.ts";
import { findProgram, runProgram } from "./programs.ts";
import { type ArchiveState, readArchive } from "./wal-archive.ts";

export interface VerifiedBackup {
  readonly manifest: BackupManifest;
  /** Undefined if no archive was named. */
  readonly archive: ArchiveState | undefined;
}

/**
 * Verifies each file of a backup against PostgreSQL's manifest, and that the archive of the log has no gap after it.
 *
 * @throws BackupError
 */
export async function verifyBackup(
  backup: string,
  walFolder: string | undefined,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<VerifiedBackup> {
  const manifest = await readManifest(backup);
  await verifyData(join(backup, dataFolder), manifest.postgresMajor, env, signal);
  return { manifest, archive: walFolder === undefined ? undefined : await readArchive(walFolder, manifest) };
}

/** @throws BackupError if a file is missing, was added or was changed */
export async function verifyData(
  data: string,
  major: number,
  env: NodeJS.ProcessEnv,
  signal: AbortSignal,
): Promise<void> {
  const program = await findProgram("pg_verifybackup", major, env);
  await runProgram(program, ["--quiet", "--exit-on-error", data], env, signal).catch((error: unknown) => {
    if (!(error instanceof BackupError)) throw error;
    throw new BackupError(error.message, "Do not restore it: use an earlier backup, or take one anew.");
  });
}
