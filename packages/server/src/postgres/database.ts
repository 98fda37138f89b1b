import { Client, DatabaseError } from "pg";
import { databaseName } from "./cluster.ts";
import type { DataLocation } from "./data-location.ts";
import { databaseRoles, type Passwords, passwordsRefused } from "./passwords.ts";

/** A server's unix socket, whose file has the port in its name. */
export interface Socket {
  readonly socketDirectory: string;
  readonly port: number;
}

/** The form of a connection string that `pg` understands for a unix socket. */
export function connectionString(
  { socketDirectory, port }: Socket,
  role: keyof Passwords,
  passwords: Passwords,
  database = databaseName,
): string {
  const query = new URLSearchParams({ host: socketDirectory, port: String(port), sslmode: "disable" });
  return `postgres://${databaseRoles[role]}:${passwords[role]}@/${database}?${query}`;
}

/**
 * Its version, when a server answers there, on this place's data; undefined while it answers "not yet" or not at all.
 *
 * @throws PostgresStartError `passwords_missing` when it refuses the password
 */
export async function serverVersion(
  socket: Socket,
  passwords: Passwords,
  { home, dataDirectory }: Pick<DataLocation, "home" | "dataDirectory">,
): Promise<string | undefined> {
  try {
    return await withClient(connectionString(socket, "superuser", passwords, "postgres"), async (client) => {
      const { rows } = await client.query<{ version: string; directory: string }>(
        "SELECT current_setting('server_version') AS version, current_setting('data_directory') AS directory",
      );
      return rows[0]?.directory === dataDirectory ? rows[0].version : undefined;
    });
  } catch (error) {
    if (error instanceof DatabaseError && error.code === "28P01") throw passwordsRefused(home);
    return undefined;
  }
}

/**
 * initdb makes neither our roles nor our database: the first start does, and any start after a crash in between. The
 * owner may do what it likes in that one database. The service gets its rights on tables with the schema.
 */
export async function ensureDatabase(socket: Socket, passwords: Passwords): Promise<void> {
  const { owner, service } = databaseRoles;
  await withClient(connectionString(socket, "superuser", passwords, "postgres"), async (client) => {
    for (const role of ["owner", "service"] as const) {
      const name = databaseRoles[role];
      const { rowCount } = await client.query("SELECT FROM pg_roles WHERE rolname = $1", [name]);
      if (rowCount === 0) await client.query(`CREATE ROLE ${name} LOGIN PASSWORD '${passwords[role]}'`);
    }
    const { rowCount } = await client.query("SELECT FROM pg_database WHERE datname = $1", [databaseName]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${databaseName} OWNER ${owner}`);
    await client.query(`
      REVOKE ALL ON DATABASE ${databaseName}, postgres, template1 FROM PUBLIC;
      GRANT CONNECT ON DATABASE ${databaseName} TO ${service}`);
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
