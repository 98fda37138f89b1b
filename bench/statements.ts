import { Client } from "pg";

/** What `--profile` starts PostgreSQL with. */
export const statementSettings = { shared_preload_libraries: "pg_stat_statements" } as const;

/** The statements that took the most time, of all databases, as lines. */
export async function profileStatements(serverUrl: string): Promise<string> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    await client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    const { rows } = await client.query<{ database: string; line: string }>(`
      SELECT d.datname AS database, format('%10s ms %8s calls %9s rows %8s ms each  %s',
        round(s.total_exec_time), s.calls, s.rows, round(s.mean_exec_time::numeric, 3),
        left(regexp_replace(trim(s.query), '\\s+', ' ', 'g'), 90)) AS line
      FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
      WHERE d.datname = 'engine' OR d.datname = 'service'
      ORDER BY s.total_exec_time DESC LIMIT 24`);
    return `statements\n${rows.map(({ database, line }) => `${database.padEnd(8)}${line}`).join("\n")}`;
  } finally {
    await client.end();
  }
}
