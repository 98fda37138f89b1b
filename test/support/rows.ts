import { queryHomes, type TestDatabase, withAdmin } from "./database.ts";

/** Counts the rows of each table of partners. */
export async function countRows(
  database: Pick<TestDatabase, "url">,
  tables: readonly string[],
): Promise<Record<string, number>> {
  const counted = tables.map((table) => `SELECT '${table}' AS of, count(*)::integer FROM ${table}`).join(" UNION ALL ");
  const counts: Record<string, number> = {};
  for (const { of, count } of await queryHomes<{ of: string; count: number }>(database, counted))
    counts[of] = (counts[of] ?? 0) + count;
  return counts;
}

/** Every row of every table as text, the table's name before it; bytes in hexadecimal. */
export async function dumpRows({ url }: Pick<TestDatabase, "url">): Promise<string> {
  return withAdmin(url, async (client) => {
    const tables = await client.query<{ table: string; path: string }>(
      `SELECT c.relname AS table, format('%I.%I', n.nspname, c.relname) AS path
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE (n.nspname = 'public' OR n.nspname LIKE 'home%') AND c.relkind IN ('r', 'p') AND NOT c.relispartition`,
    );
    const lines: string[] = [];
    for (const { table, path } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(`SELECT to_jsonb(t)::text AS row FROM ${path} t`);
      lines.push(...rows.map(({ row }) => `${table} ${row}`));
    }
    return lines.join("\n");
  });
}
