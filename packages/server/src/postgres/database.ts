import { Client } from "pg";
import { databaseName } from "./cluster.ts";

/** The form of a connection string that `pg` understands for a unix socket. The port names the socket's file. */
export function connectionString(socketDirectory: string, port: number, database = databaseName): string {
  const query = new URLSearchParams({ host: socketDirectory, port: String(port), sslmode: "disable" });
  return `postgres://${databaseName}@/${database}?${query}`;
}

/** Whether a server answers there, on this data directory; undefined while it answers "not yet" or not at all. */
export async function serverVersion(
  socketDirectory: string,
  port: number,
  dataDirectory: string,
): Promise<string | undefined> {
  try {
    return await withClient(connectionString(socketDirectory, port, "postgres"), async (client) => {
      const { rows } = await client.query<{ version: string; directory: string }>(
        "SELECT current_setting('server_version') AS version, current_setting('data_directory') AS directory",
      );
      return rows[0]?.directory === dataDirectory ? rows[0].version : undefined;
    });
  } catch {
    return undefined;
  }
}

/** initdb makes no database of our name: the first start does, and any start after a crash in between. */
export async function ensureDatabase(socketDirectory: string, port: number): Promise<void> {
  await withClient(connectionString(socketDirectory, port, "postgres"), async (client) => {
    const { rowCount } = await client.query("SELECT 1 FROM pg_database WHERE datname = $1", [databaseName]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${databaseName}`);
  });
}

async function withClient<Result>(url: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 5_000, query_timeout: 30_000 });
  // A server that dies while we hold a connection reports it here as well; the query in flight rejects on its own.
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await use(client);
  } finally {
    await client.end().catch(() => undefined);
  }
}
