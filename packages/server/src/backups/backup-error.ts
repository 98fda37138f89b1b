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
