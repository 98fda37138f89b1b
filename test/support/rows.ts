import { Client } from "pg";

/** How many rows each of the tables has. */
export async function countRows(databaseUrl: string, tables: readonly string[]): Promise<Record<string, number>> {
  return withClient(databaseUrl, async (client) => {
    const counts: Record<string, number> = {};
    for (const table of tables) {
      const { rows } = await client.query<{ count: string }>(`SELECT count(*) FROM ${client.escapeIdentifier(table)}`);
      counts[table] = Number(rows[0]?.count);
    }
    return counts;
  });
}

/** Every row of every table as text, the table's name before it; bytes in hexadecimal. */
export async function dumpRows(databaseUrl: string): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const tables = await client.query<{ table_name: string }>(
      "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
    );
    const lines: string[] = [];
    for (const { table_name: table } of tables.rows) {
      const { rows } = await client.query<{ row: string }>(
        `SELECT to_jsonb(t)::text AS row FROM ${client.escapeIdentifier(table)} t`,
      );
      lines.push(...rows.map(({ row }) => `${table} ${row}`));
    }
    return lines.join("\n");
  });
}

async function withClient<Result>(databaseUrl: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}
