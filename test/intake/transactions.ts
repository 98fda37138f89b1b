import { queryHomes, type TestDatabase } from "../support/database.ts";

/** Counts the transactions of all homes, their different external ids, and those that have a notification. */
export async function countTransactions(
  database: TestDatabase,
): Promise<{ readonly rows: number; readonly keys: number; readonly told: number }> {
  const homes = await queryHomes<{ rows: number; keys: number; told: number }>(
    database,
    `SELECT count(*)::integer AS rows, count(DISTINCT external_id)::integer AS keys,
       count(notification_id)::integer AS told
     FROM transactions`,
  );
  const sum = (of: "rows" | "keys" | "told") => homes.reduce((all, home) => all + home[of], 0);
  return { rows: sum("rows"), keys: sum("keys"), told: sum("told") };
}
