/** Why the embedded PostgreSQL cannot start. Callers branch on it; {@link PostgresStartError.message} is for people. */
export type PostgresStartCode =
  | "binaries_missing"
  | "binaries_unusable"
  | "account_unusable"
  | "home_not_permitted"
  | "home_in_use"
  | "disk_full"
  | "other_major_version"
  | "data_missing"
  | "data_refused"
  | "passwords_missing"
  | "socket_unusable"
  | "socket_taken"
  | "shared_memory"
  | "settings_refused"
  | "orphan_unresponsive"
  | "start_timeout";

/** A start that failed: one sentence saying what was wrong and where, and one saying what to do. */
export class PostgresStartError extends Error {
  override readonly name = "PostgresStartError";
  readonly code: PostgresStartCode;
  readonly remedy: string;

  constructor(code: PostgresStartCode, message: string, remedy: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.code = code;
    this.remedy = remedy;
  }
}

export function diskFull(path: string, cause?: unknown): PostgresStartError {
  return new PostgresStartError(
    "disk_full",
    `The disk that holds ${path} is full.`,
    "Free space on it, or move the home to a larger disk with PAYBELL_HOME; nothing that was recorded is lost.",
    cause,
  );
}

export function homeNotPermitted(path: string, cause?: unknown): PostgresStartError {
  return new PostgresStartError(
    "home_not_permitted",
    `This user may not read and write ${path}.`,
    "Run as the user that owns it, give it to this user with chown, or choose another folder with PAYBELL_HOME.",
    cause,
  );
}

/**
 * Converts the system's errors to ours; an unknown one stays as it is, so that a bug does not get a misleading remedy.
 */
export function startErrorOf(error: unknown, path: string): unknown {
  if (error instanceof PostgresStartError) return error;
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOSPC" || code === "EDQUOT") return diskFull(path, error);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS" || code === "ENOTDIR")
    return homeNotPermitted(path, error);
  return error;
}
