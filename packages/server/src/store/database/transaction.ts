import { setTimeout as pause } from "node:timers/promises";
import { DatabaseError, type Pool, type PoolClient, type QueryResult } from "pg";

/**
 * Runs `work` in a transaction, on a connection of its own. Its first statement is sent after BEGIN without waiting for
 * the answer. If anything fails, the connection is closed, which rolls back: its state is unknown.
 *
 * @param begin more than BEGIN, for another isolation
 * @throws what `work` throws; Error if PostgreSQL rolled the transaction back in place of committing it
 */
export async function inTransaction<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
  begin = "BEGIN",
): Promise<Result> {
  const client = await pool.connect();
  try {
    const [, result] = await Promise.all([client.query(begin), work(client)]);
    assertCommitted(await client.query("COMMIT"));
    client.release();
    return result;
  } catch (error) {
    client.release(true);
    throw error;
  }
}

/** A transaction that failed before is answered ROLLBACK, and that is no error to PostgreSQL. */
export function assertCommitted({ command }: QueryResult): void {
  if (command !== "COMMIT") throw new Error("The transaction was rolled back.");
}

/**
 * Classifies a database error by whether to repeat the work. This is the only place that decides it.
 *
 * - `conflict`: deadlock, serialization, lock timeout: the same batch again.
 * - `data`: a row cannot be stored: the batch is halved until the bad row is alone.
 * - `connection`: the database was unavailable, so a COMMIT may or may not have happened: again, which is idempotent.
 * - `bug`: anything else; never repeated.
 */
export type FailureKind = "conflict" | "data" | "connection" | "bug";

const conflicts = new Set(["40001", "40P01", "55P03", "40003"]);
// Data exceptions, integrity constraints, program limits.
const dataClasses = new Set(["22", "23", "54"]);
// Connection exceptions, refused sign-ins, insufficient resources, operator intervention, system errors.
const connectionClasses = new Set(["08", "28", "53", "57", "58"]);
// A read-only server is a former primary: wait for the new one. A session idle in a transaction lost its connection. A
// database that does not exist is being restored.
const connectionCodes = new Set(["25006", "25P03", "3D000"]);
// Errors of connecting and of name look-ups name their system call; those of TLS, and of several addresses, do not. The
// server after a failover may have another certificate.
const socketCode =
  /^(CERT_|DEPTH_ZERO_|E(ADDR|CONN|HOST|NET)|EPIPE$|EPROTO$|ERR_(SSL|TLS)_|ETIMEDOUT$|SELF_SIGNED_|UNABLE_TO_)/;

// The driver's own messages, which have no code. A silent server is detected by the timeout of the read.
const driverWords = new RegExp(
  [
    "connection (terminated|ended)",
    "timeout exceeded when trying to connect",
    "timeout expired",
    "query read timeout",
    "not queryable",
    "client was closed",
    "SSL connection",
  ].join("|"),
  "i",
);

export function failureKindOf(error: unknown): FailureKind {
  if (error instanceof DatabaseError && error.code !== undefined) {
    if (conflicts.has(error.code)) return "conflict";
    if (dataClasses.has(error.code.slice(0, 2))) return "data";
    if (connectionClasses.has(error.code.slice(0, 2)) || connectionCodes.has(error.code)) return "connection";
    return "bug";
  }
  if (!(error instanceof Error)) return "bug";
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  if (syscall === "connect" || syscall === "getaddrinfo" || socketCode.test(code)) return "connection";
  return driverWords.test(error.message) ? "connection" : "bug";
}

/** Whether a row has a key that another row has. */
export function isUniqueViolation(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "23505";
}

/** Whether PostgreSQL ended it because it and others waited for each other: it may be run again. */
export function isDeadlock(error: unknown): boolean {
  return error instanceof DatabaseError && error.code === "40P01";
}

const conflictTriesMax = 10;
const conflictWaitMs = 5;

/** Repeats what lost a deadlock. Repetition is safe, because the failure rolled everything back. */
export async function despiteConflicts<Result>(run: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await run();
    } catch (error) {
      if (failureKindOf(error) !== "conflict" || tries >= conflictTriesMax) throw error;
      await pause(tries * conflictWaitMs);
    }
  }
}
