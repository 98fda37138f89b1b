import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { BackupError, type BackupManifest, dataFolder, readManifest } from "./manifest.ts";
import { findProgram, runProgram } from "./programs.ts";

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

/** The part of the server's log that an archive has, from the beginning of a backup on. */
export interface ArchiveState {
  readonly segments: number;
  /** The first segment that the backup needs. No backup that began later needs an earlier one. */
  readonly first: string;
  readonly last: string;
  /** When the last one was archived: the log reaches to about this time. */
  readonly lastAtMs: number;
  /** The timelines that a restore or a promotion began after the backup's, as their files' names begin. */
  readonly laterTimelines: readonly string[];
}

const segmentName = /^[0-9A-F]{24}$/;

/**
 * Reads which segments of the backup's timeline are there.
 *
 * @throws BackupError if one is missing or cut off: a restore would end before it
 */
export async function readArchive(
  folder: string,
  { timeline, startLsn, walSegmentBytes }: Pick<BackupManifest, "timeline" | "startLsn" | "walSegmentBytes">,
): Promise<ArchiveState> {
  const names = await readdir(folder).catch((error: unknown) => {
    throw new BackupError(`The archive cannot be read: ${(error as Error).message}.`, "");
  });
  const there = new Set(names.filter((name) => segmentName.test(name)));
  const first = segmentOf(startLsn, walSegmentBytes);
  const newest = [...there]
    .filter((name) => Number.parseInt(name.slice(0, 8), 16) === timeline)
    .map((name) => numberOf(name, walSegmentBytes))
    .reduce((most, number) => (number > most ? number : most), -1n);
  if (newest < first) {
    throw new BackupError(
      `The archive ${folder} has nothing from ${nameOf(timeline, first, walSegmentBytes)} on, where the backup begins.`,
      "Is it this server's archive, and does archive_command work? pg_stat_archiver shows its last failure.",
    );
  }
  let last = { name: "", atMs: 0 };
  for (let number = first; number <= newest; number += 1n) {
    const name = nameOf(timeline, number, walSegmentBytes);
    const found = there.has(name) ? await stat(join(folder, name)) : undefined;
    if (found === undefined || found.size !== walSegmentBytes) {
      const what = found === undefined ? "lacks" : "has cut off";
      throw new BackupError(`The archive ${what} ${name}: a restore ends before it.`, "Take a new backup now.");
    }
    last = { name, atMs: found.mtimeMs };
  }
  const laterTimelines = names
    .flatMap((name) => /^([0-9A-F]{8})\.history$/.exec(name)?.[1] ?? [])
    .filter((name) => Number.parseInt(name, 16) > timeline)
    .toSorted();
  const needed = nameOf(timeline, first, walSegmentBytes);
  return { segments: Number(newest - first) + 1, first: needed, last: last.name, lastAtMs: last.atMs, laterTimelines };
}

/** The number of the segment with this position. */
function segmentOf(lsn: string, bytes: number): bigint {
  const [high = "0", low = "0"] = lsn.split("/");
  return ((BigInt(`0x${high}`) << 32n) + BigInt(`0x${low}`)) / BigInt(bytes);
}

function numberOf(name: string, bytes: number): bigint {
  return BigInt(`0x${name.slice(8, 16)}`) * perFile(bytes) + BigInt(`0x${name.slice(16)}`);
}

function nameOf(timeline: number, number: bigint, bytes: number): string {
  const parts = [BigInt(timeline), number / perFile(bytes), number % perFile(bytes)];
  return parts.map((part) => part.toString(16).toUpperCase().padStart(8, "0")).join("");
}

/** The middle part of a name counts 4 GiB. */
function perFile(bytes: number): bigint {
  return 0x1_0000_0000n / BigInt(bytes);
}
