import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { z } from "zod";

/** A backup is a folder: PostgreSQL's data and, beside them, what Paybell knows about them. */
export const dataFolder = "data";
export const manifestFile = "paybell-backup.json";

const manifestSchema = z.object({
  format: z.literal(1),
  name: z.string(),
  paybell: z.string(),
  /** The number of the last migration. */
  schema: z.int(),
  postgres: z.string(),
  postgresMajor: z.int(),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  /** Without the server's log, a backup restores its own end only. */
  walArchived: z.boolean(),
  walSegmentBytes: z.int().positive(),
  timeline: z.int().positive(),
  /** The start of the write-ahead log that the backup needs, such as 0/3000028. */
  startLsn: z.string(),
});

export type BackupManifest = z.infer<typeof manifestSchema>;

/** @throws BackupError if the folder is no backup of `paybell backup` */
export async function readManifest(backup: string): Promise<BackupManifest> {
  const path = join(backup, manifestFile);
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw notABackup(backup, (error as Error).message);
  });
  try {
    return manifestSchema.parse(JSON.parse(text));
  } catch {
    throw notABackup(backup, `${manifestFile} is not as this version writes it`);
  }
}

function notABackup(backup: string, why: string): BackupError {
  return new BackupError(
    `${backup} is not a backup of Paybell: ${why}.`,
    "Name a folder that `paybell backup` made, such as backups/paybell-20261122T030000Z.",
  );
}

const postgresManifest = z.object({
  "WAL-Ranges": z.array(z.object({ Timeline: z.int(), "Start-LSN": z.string() })).min(1),
});

/** The beginning of the log that the data need, by PostgreSQL's own manifest. */
export async function readWalStart(data: string): Promise<{ readonly timeline: number; readonly startLsn: string }> {
  const text = await readFile(join(data, "backup_manifest"), "utf8");
  const ranges = postgresManifest.parse(JSON.parse(text))["WAL-Ranges"];
  // The last range is that of the timeline on which the backup ended; there is more than one on a promoted standby.
  const range = ranges.at(-1) as (typeof ranges)[number];
  return { timeline: range.Timeline, startLsn: range["Start-LSN"] };
}

/** A backup cannot be taken, verified or restored. */
export class BackupError extends Error {
  override readonly name = "BackupError";
  readonly code = "backup_failed";
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}
