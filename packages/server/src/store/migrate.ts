import { readdir, readFile } from "node:fs/promises";
import { Client } from "pg";
import { copyReferenceTables, enterHome, schemasOfHomes } from "./citus.ts";

/**
 * One numbered SQL file. Its first line may say `--! breaking`: version n−1 of the service cannot go on running beside
 * it; and `--! homes`: it is applied to each home.
 */
interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly isBreaking: boolean;
  readonly isOfHomes: boolean;
}

/** The next migration ends what older instances rely on, and some of them run. */
export class InstancesInTheWay extends Error {
  override readonly name = "InstancesInTheWay";
  readonly code = "instances_in_the_way";
  readonly remedy = "Stop every instance of the older version, then start this one: within 8 s their leases are over.";

  constructor(migration: string, hosts: readonly string[]) {
    super(`Migration ${migration} is breaking, and instances of an older version run on ${hosts.join(", ")}.`);
  }
}

const migrationsFolder = new URL("./migrations/", import.meta.url);
// Any number will do, as long as every version of the service uses the same one.
const migrationLock = 7_420_001;

/**
 * Brings the schema up to this version: each missing migration in a transaction of its own, one instance at a time.
 * Rejects when the database is of a newer version than this service.
 *
 * @param folder of the migrations, another one for a test
 * @throws InstancesInTheWay before a breaking migration, while anybody holds a lease, or did a moment ago
 * @returns the names of the migrations that were applied now
 */
export async function migrate(connectionString: string, folder: URL = migrationsFolder): Promise<readonly string[]> {
  const migrations = await readMigrations(folder);
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
    // What waits for a lock of a table holds up all who come after it.
    await client.query("SET LOCAL lock_timeout = '5s'");
    if (migration.isBreaking) await requireNoHolders(client, migration.name);
    const schemas = migration.isOfHomes ? await schemasOfHomes(client) : [];
    if (schemas.length === 0) await client.query(migration.sql);
    for (const schema of schemas) {
      await enterHome(client, schema);
      // Citus passes a statement on with all that was sent with it.
      for (const statement of migration.sql.split(/;$/m)) await client.query(statement);
    }
    if (!migration.isOfHomes) await copyReferenceTables(client);
    if (schemas.length > 0) await client.query("SET LOCAL search_path TO DEFAULT");
    await client.query("INSERT INTO migrations (number, name) VALUES ($1, $2)", [migration.number, migration.name]);
    await client.query("COMMIT");
  } catch (error) {
    await client.query("ROLLBACK");
    if (error instanceof InstancesInTheWay) throw error;
    throw new Error(`Migration ${migration.name} failed and was rolled back.`, { cause: error });
  }
}

/** An instance takes a lease only after it has migrated: whoever holds one now is of a version before this. */
async function requireNoHolders(client: Client, migration: string): Promise<void> {
  const { rows: tables } = await client.query("SELECT FROM pg_tables WHERE tablename = 'leases'");
  if (tables.length === 0) return;
  // Nobody takes a lease, and none is kept up, until this transaction has ended.
  await client.query("LOCK TABLE leases IN SHARE MODE");
  const { rows } = await client.query<{ host: string }>(
    "SELECT host FROM leases WHERE beaten_at > now() - interval '8 seconds' ORDER BY id",
  );
  if (rows.length > 0) throw new InstancesInTheWay(migration, [...new Set(rows.map(({ host }) => host))]);
}

async function readMigrations(folder: URL): Promise<readonly Migration[]> {
  const names = (await readdir(folder)).filter((name) => /^\d{4}_\w+\.sql$/.test(name)).sort();
  return Promise.all(
    names.map(async (name) => {
      const sql = await readFile(new URL(name, folder), "utf8");
      const [marks = ""] = /^--! .*/.exec(sql) ?? [];
      return {
        number: Number.parseInt(name.slice(0, 4), 10),
        name,
        sql,
        isBreaking: /\bbreaking\b/.test(marks),
        isOfHomes: /\bhomes\b/.test(marks),
      };
    }),
  );
}
