import { Client } from "pg";

/**
 * PostgreSQL's settings when its statements are measured, but not for every database, because that costs each row of
 * the table something.
 */
export const statementSettings = {
  shared_preload_libraries: "pg_stat_statements",
  "pg_stat_statements.track": "none",
} as const;

/** Settings that count the statements of all databases from the start. */
export const everyStatement = { ...statementSettings, "pg_stat_statements.track": "top" } as const;

/** One statement of a database, since the last `forget`. */
export interface StatementCost {
  /** On one line, each constant and parameter as `?`. */
  readonly query: string;
  readonly calls: number;
  readonly rows: number;
  readonly totalMs: number;
}

/** The cost of PostgreSQL's statements, per database. */
export class Statements {
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
  }

  static async open(serverUrl: string): Promise<Statements> {
    const client = new Client({ connectionString: serverUrl });
    await client.connect();
    await client.query("CREATE EXTENSION IF NOT EXISTS pg_stat_statements");
    return new Statements(client);
  }

  /** From now on, for connections that come. */
  async watch(database: string): Promise<void> {
    await this.#client.query(
      `ALTER DATABASE ${this.#client.escapeIdentifier(database)} SET pg_stat_statements.track = 'top'`,
    );
  }

  async forget(): Promise<void> {
    await this.#client.query("SELECT pg_stat_statements_reset()");
  }

  /** The service's statements in one database, the most expensive first. */
  async of(database: string): Promise<readonly StatementCost[]> {
    const { rows } = await this.#client.query<StatementCost>(
      `SELECT s.query, s.calls::float8 AS calls, s.rows::float8 AS rows, s.total_exec_time AS "totalMs"
       FROM pg_stat_statements s JOIN pg_database d ON d.oid = s.dbid
       WHERE d.datname = $1 AND s.toplevel
       ORDER BY s.total_exec_time DESC`,
      [database],
    );
    const costs = new Map<string, StatementCost>();
    for (const { query: text, ...cost } of rows) {
      const query = withoutConstants(text);
      const { calls = 0, rows: brought = 0, totalMs = 0 } = costs.get(query) ?? {};
      costs.set(query, {
        query,
        calls: calls + cost.calls,
        rows: brought + cost.rows,
        totalMs: totalMs + cost.totalMs,
      });
    }
    return [...costs.values()];
  }

  async close(): Promise<void> {
    await this.#client.end();
  }
}

/** The statements that took the most time, of these databases, as lines. */
export async function profileStatements(serverUrl: string, databases: readonly string[]): Promise<string> {
  const statements = await Statements.open(serverUrl);
  try {
    const found = await Promise.all(databases.map(async (name) => ({ name, costs: await statements.of(name) })));
    const lines = found.flatMap(({ name, costs }) =>
      costs.slice(0, 24).map((cost) => `${name.padEnd(8)}${line(cost)}`),
    );
    return `statements\n${lines.join("\n")}`;
  } finally {
    await statements.close();
  }
}

function line({ query, calls, rows, totalMs }: StatementCost): string {
  const spent = `${totalMs.toFixed(0).padStart(10)} ms ${String(calls).padStart(8)} calls`;
  const each = `${(totalMs / calls).toFixed(3).padStart(8)} ms each`;
  return `${spent} ${String(rows).padStart(9)} rows ${each}  ${query.slice(0, 90)}`;
}

/** PostgreSQL takes them out when it prepares a statement, and leaves them in where that was before a reset. */
function withoutConstants(query: string): string {
  return query
    .trim()
    .replaceAll(/'[^']*'|\$\d+|\b\d+\b/g, "?")
    .replaceAll(/\s+/g, " ");
}
