import type { Pool, PoolClient, QueryResult } from "pg";

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
