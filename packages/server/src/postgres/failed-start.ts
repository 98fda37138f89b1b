import { statfs } from "node:fs/promises";
import { diskFull, homeNotPermitted, PostgresStartError } from "./start-error.ts";

/** The output of a tool or the server before it gave up. */
export interface FailedStart {
  readonly output: string;
  readonly dataDirectory: string;
  readonly socketDirectory?: string;
}

type Reading = readonly [pattern: RegExp, error: (refusal: FailedStart) => PostgresStartError];

const readings: readonly Reading[] = [
  [
    /No space left on device|Disk quota exceeded/,
    ({ dataDirectory, output }) => diskFull(dataDirectory, lastLines(output)),
  ],
  [/could not look up effective user ID (\d+)/, unknownUser],
  [/error while loading shared libraries|Library not loaded|GLIBC_|Exec format error|spawn .* ENOENT/, unusable],
  [
    /unrecognized configuration parameter|(invalid value|requires a .* value) for parameter|is outside the valid range/,
    settingsRefused,
  ],
  [/could not (create|map|resize|open) .*shared memory|Cannot allocate memory|could not create semaphores/, memory],
  [/database files are incompatible with server|initialized by PostgreSQL version/, otherMajor],
  [/Unix-domain socket path ".*" is too long|could not create .*socket|could not bind Unix address/, socketUnusable],
  [/lock file ".*\.s\.PGSQL\.\d+\.lock" already exists|Is another postmaster .*running/, socketTaken],
  [
    /(Permission denied|Operation not permitted|Read-only file system|wrong ownership|invalid permissions)/,
    ({ dataDirectory, output }) => homeNotPermitted(dataDirectory, lastLines(output)),
  ],
];

/** PostgreSQL's smallest need: one segment of its write-ahead log. */
const fullDiskBytes = 16 * 1024 * 1024;

/** As {@link refusalError}, but checks the disk first: on a full one PostgreSQL cannot even write why it ended. */
export async function explainFailedStart(refusal: FailedStart): Promise<PostgresStartError> {
  const { bavail, bsize } = await statfs(refusal.dataDirectory);
  if (bavail * bsize < fullDiskBytes) return diskFull(refusal.dataDirectory, lastLines(refusal.output));
  return refusalError(refusal);
}

/** Reads PostgreSQL's last words; what it cannot read is `data_refused`, with the words themselves. */
export function refusalError(refusal: FailedStart): PostgresStartError {
  for (const [pattern, error] of readings) if (pattern.test(refusal.output)) return error(refusal);
  return dataRefused(refusal.dataDirectory, refusal.output);
}

export function dataRefused(dataDirectory: string, words: string): PostgresStartError {
  return new PostgresStartError(
    "data_refused",
    `PostgreSQL refuses to start on ${dataDirectory}: ${lastLines(words)}`,
    `Nothing was changed. Keep a copy of ${dataDirectory}, then restore it from a backup; ` +
      "to begin with an empty ledger, move it away.",
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

function otherMajor({ dataDirectory, output }: FailedStart): PostgresStartError {
  const versions = /initialized by PostgreSQL version ([^\s,]+),[^\d\n]* version ([\w.]+?)\.?$/m.exec(output);
  return otherMajorVersion(dataDirectory, versions?.[1] ?? "of another version", versions?.[2] ?? "of its own");
}

function unknownUser({ output }: FailedStart): PostgresStartError {
  const uid = /effective user ID (\d+)/.exec(output)?.[1] ?? "";
  return new PostgresStartError(
    "account_unusable",
    `PostgreSQL cannot create its database as user ${uid}, because the system has no user with that number.`,
    `Run as a user that /etc/passwd lists, or add a line for ${uid} to it.`,
    lastLines(output),
  );
}

function unusable({ output }: FailedStart): PostgresStartError {
  return new PostgresStartError(
    "binaries_unusable",
    `The installed PostgreSQL binaries do not run on this system: ${lastLines(output)}`,
    "They need glibc and this processor. On Alpine (musl) set DATABASE_URL to your own PostgreSQL.",
  );
}

function memory({ output }: FailedStart): PostgresStartError {
  return new PostgresStartError(
    "shared_memory",
    `The system gives PostgreSQL too little shared memory: ${lastLines(output)}`,
    "Give the machine or container more memory (docker run --shm-size=256m), or lower shared_buffers.",
  );
}

function settingsRefused({ output }: FailedStart): PostgresStartError {
  return new PostgresStartError(
    "settings_refused",
    `PostgreSQL does not accept its settings: ${lastLines(output)}`,
    "Correct the setting that the line names.",
  );
}

function socketUnusable({ socketDirectory, output }: FailedStart): PostgresStartError {
  return new PostgresStartError(
    "socket_unusable",
    `PostgreSQL cannot make its socket in ${socketDirectory ?? "its folder"}: ${lastLines(output)}`,
    "Set PAYBELL_HOME to a folder on a local disk with a short path.",
  );
}

function socketTaken({ dataDirectory, output }: FailedStart): PostgresStartError {
  const pid = /PID (\d+)/.exec(output)?.[1];
  return new PostgresStartError(
    "socket_taken",
    `Another PostgreSQL${pid === undefined ? "" : ` (process ${pid})`} holds ${dataDirectory} or its socket.`,
    "Stop that process, or choose another folder with PAYBELL_HOME.",
    lastLines(output),
  );
}

function lastLines(output: string): string {
  return output.trim().split("\n").slice(-4).join(" | ");
}
