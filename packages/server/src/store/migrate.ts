import { readdir, readFile } from "node:fs/promises";
import { Client } from "pg";

/**
 * One numbered SQL file. `--! breaking` on its first line: version n−1 of the service cannot go on running beside it.
 */
interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
}

const folder = new URL("./migrations/", import.meta.url);
// Any number will do, as long as every version of the service uses the same one.
const migrationLock = 7_420_001;

/**
 * Brings the schema up to this version: each missing migration in a transaction of its own, one instance at a time.
 * Rejects when the database is of a newer version than this service.
 *
 * @returns the names of the migrations that were applied now
 */
export async function migrate(connectionString: string): Promise<readonly string[]> {
  const migrations = await readMigrations();
  const client = new Client({ connectionString, application_name: "paybell migrate" });
  await client.connect();
  try {
    await client.query("SELECT pg_advisory_lock($1)", [migrationLock]);
    await client.query(
      `CREATE TABLE IF NOT EXISTS migrations (
         number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
    );
    const { rows } = await client.query<{ number: number }>("SELECT number FROM migrations ORDER BY number");
    const applied = new Set(rows.map((row) => row.number));
    const newest = migrations.at(-1)?.number ?? 0;
    const unknown = [...applied].filter((number) => number > newest);
    if (unknown.length > 0) {
      throw new Error(
        `The database has migration ${unknown.join(", ")}, this version of Paybell knows none after ${newest}: ` +
          "run the newer version that applied it.",
      );
    }
    const missing = migrations.filter((migration) => !applied.has(migration.number));
    for (const migration of missing) await apply(client, migration);
    return missing.map((migration) => migration.name);
  } finally {
    await client.end();
  }
}

async function apply(client: Client, migration: Migration): Promise<void> {
  await client.query("BEGIN");
  try {
    await client.query(migration.sql);
    await client.query("INSERT INTO migrations (number, name) VALUES ($1, $2)", [migration.number, migration.name]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    throw new Error(`Migration ${migration.name} failed and was rolled back.`, { cause: error });
  }
}

async function readMigrations(): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => ({
      number: Number.parseInt(name.slice(0, 4), 10),
      name,
      sql: await readFile(new URL(name, folder), "utf8"),
    })),
  );
}
