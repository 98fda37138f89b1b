import { statfs } from "node:fs/promises";

/** A start that failed: one sentence saying what was wrong and where, and one saying what to do. */
export class PostgresStartError extends Error {
  override readonly name = "PostgresStartError";
  readonly code: string;
  readonly remedy: string;

  constructor(code: string, message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.remedy = remedy;
  }
}

export function homeNotPermitted(path: string, cause?: unknown): PostgresStartError {
  return new PostgresStartError(
    "home_not_permitted",
    `This user may not read and write ${path}.`,
    "Run as the user that owns it, give it to this user with chown, or choose another folder with PAYBELL_HOME.",
    cause,
  );
}

export function otherMajorVersion(dataDirectory: string, found: string, ours: string): PostgresStartError {
  return new PostgresStartError(
    "other_major_version",
    `${dataDirectory} was made by PostgreSQL ${found}, and this Paybell brings PostgreSQL ${ours}.`,
    "Run the Paybell that made it, dump the database there (pg_dump) and load it here; " +
      "to begin with an empty ledger, move the folder away.",
  );
}

export function dataRefused(dataDirectory: string, words: string): PostgresStartError {
  return new PostgresStartError(
    "data_refused",
    `PostgreSQL refuses to start on ${dataDirectory}: ${words}`,
    `Nothing was changed. Keep a copy of ${dataDirectory}, then restore it from a backup; ` +
      "to begin with an empty ledger, move it away.",
  );
}

function diskFull(path: string, cause?: unknown): PostgresStartError {
  return new PostgresStartError(
    "disk_full",
    `The disk that holds ${path} is full.`,
    "Free space on it, or move the home to a larger disk with PAYBELL_HOME; nothing that was recorded is lost.",
    cause,
  );
}

/**
 * Converts the system's errors to ours; an unknown one stays as it is, so that a bug does not get a misleading remedy.
 */
export function startErrorOf(error: unknown, path: string): unknown {
  if (error instanceof PostgresStartError) return error;
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (["ENOSPC", "EDQUOT"].includes(code)) return diskFull(path, error);
  if (["EACCES", "EPERM", "EROFS", "ENOTDIR"].includes(code)) return homeNotPermitted(path, error);
  return error;
}

/** The output of initdb or the server before it gave up. */
export interface FailedStart {
  readonly output: string;
  readonly dataDirectory: string;
  readonly socketDirectory?: string;
}

/** @param words the last lines of the output @param part what the pattern found in its parentheses */
type Message = (words: string, failed: FailedStart, part: string | undefined) => string;

const readings: readonly (readonly [pattern: RegExp, code: string, message: Message, remedy: string])[] = [
  [
    /could not look up effective user ID (\d+)/,
    "account_unusable",
    (_words, _failed, uid) =>
      `PostgreSQL cannot create its database as user ${uid}, because the system has no user with that number.`,
    "Run as a user that /etc/passwd lists, or add a line for that number to it.",
  ],
  [
    /error while loading shared libraries|Library not loaded|GLIBC_|Exec format error|spawn .* ENOENT/,
    "binaries_unusable",
    (words) => `The installed PostgreSQL binaries do not run on this system: ${words}`,
    "They need glibc and this processor. On Alpine (musl) set DATABASE_URL to your own PostgreSQL.",
  ],
  [
    /unrecognized configuration parameter|(?:invalid value|requires a .* value) for parameter|is outside the valid range/,
    "settings_refused",
    (words) => `PostgreSQL does not accept its settings: ${words}`,
    "Correct the setting that the line names.",
  ],
  [
    /could not (?:create|map|resize|open) .*shared memory|Cannot allocate memory|could not create semaphores/,
    "shared_memory",
    (words) => `The system gives PostgreSQL too little shared memory: ${words}`,
    "Give the machine or container more memory (docker run --shm-size=256m), or lower shared_buffers.",
  ],
  [
    /Unix-domain socket path ".*" is too long|could not create .*socket|could not bind Unix address/,
    "socket_unusable",
    (words, { socketDirectory = "its folder" }) => `PostgreSQL cannot make its socket in ${socketDirectory}: ${words}`,
    "Set PAYBELL_HOME to a folder on a local disk with a short path.",
  ],
  [
    /lock file ".*\.s\.PGSQL\.\d+\.lock" already exists|Is another postmaster .*running/,
    "socket_taken",
    (words, { dataDirectory }) => `Another PostgreSQL holds ${dataDirectory} or its socket: ${words}`,
    "Stop that process, or choose another folder with PAYBELL_HOME.",
  ],
];

/** PostgreSQL's smallest need: one segment of its write-ahead log. */
const fullDiskBytes = 16 * 1024 * 1024;

/** As {@link refusalError}, but checks the disk first: on a full one PostgreSQL cannot even write why it ended. */
export async function explainFailedStart(failed: FailedStart): Promise<PostgresStartError> {
  const { bavail, bsize } = await statfs(failed.dataDirectory);
  return bavail * bsize < fullDiskBytes ? diskFull(failed.dataDirectory, lastLines(failed)) : refusalError(failed);
}

/** Reads PostgreSQL's last words; what it cannot read is `data_refused`, with the words themselves. */
export function refusalError(failed: FailedStart): PostgresStartError {
  const { output, dataDirectory } = failed;
  const words = lastLines(failed);
  if (/No space left on device|Disk quota exceeded/.test(output)) return diskFull(dataDirectory, words);
  for (const [pattern, code, message, remedy] of readings) {
    const found = pattern.exec(output);
    if (found !== null) return new PostgresStartError(code, message(words, failed, found[1]), remedy, words);
  }
  return /Permission denied|Operation not permitted|Read-only file system|wrong ownership|invalid permissions/.test(
    output,
  )
    ? homeNotPermitted(dataDirectory, words)
    : dataRefused(dataDirectory, words);
}

function lastLines({ output }: FailedStart): string {
  return output.trim().split("\n").slice(-4).join(" | ");
}
