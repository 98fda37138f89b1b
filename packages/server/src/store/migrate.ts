import { readdir, readFile } from "node:fs/promises";
import { Client, type ClientBase } from "pg";
import { grantToService } from "./service-role.ts";

/**
 * One numbered SQL file. `--! breaking` on its first line: version n−1 of the service cannot go on running beside it.
 */
interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly isBreaking: boolean;
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

/** The schema is older than this version, and this role may not change it. */
class MigrationsMissing extends Error {
  override readonly name = "MigrationsMissing";
  readonly code = "migrations_missing";
  readonly remedy =
    "Run `paybell migrate` with PAYBELL_MIGRATION_DATABASE_URL, the database as the role that owns the schema.";

  constructor(migrations: readonly string[]) {
    super(`The database lacks ${migrations.join(", ")}, and the role of DATABASE_URL may not change the schema.`);
  }
}

export interface SchemaUrls {
  /** As the role that runs the service. */
  readonly databaseUrl: string;
  /** As the role that owns the schema; without it, that is the same role. */
  readonly ownerUrl?: string | null;
}

const migrationsFolder = new URL("./migrations/", import.meta.url);
// Any number will do, as long as every version of the service uses the same one.
const migrationLock = 7_420_001;

/**
 * Brings the schema up to this version, by its owner, and gives the service's role its rights on it.
 *
 * @throws MigrationsMissing without the owner's URL, when the service's role may not change the schema
 */
export async function prepareSchema({ databaseUrl, ownerUrl = null }: SchemaUrls): Promise<readonly string[]> {
  return ownerUrl === null ? migrate(databaseUrl) : migrate(ownerUrl, migrationsFolder, await roleOf(databaseUrl));
}

/**
 * Brings the schema up to this version: each missing migration in a transaction of its own, one instance at a time.
 * Rejects when the database is of a newer version than this service.
 *
 * @param folder of the migrations, another one for a test
 * @param serviceRole which is given what it needs to run the service
 * @throws InstancesInTheWay before a breaking migration, while anybody holds a lease, or did a moment ago
 * @returns the names of the migrations that were applied now
 */
export async function migrate(
  connectionString: string,
  folder: URL = migrationsFolder,
  serviceRole?: string,
): Promise<readonly string[]> {
  const migrations = await readMigrations(folder);
  return withClient(connectionString, async (client) => {
    await client.query("SELECT pg_advisory_lock($1)", [migrationLock]);
    const applied = await appliedMigrations(client);
    const newest = migrations.at(-1)?.number ?? 0;
    const unknown = [...applied].filter((number) => number > newest);
    if (unknown.length > 0) {
      throw new Error(
        `The database has migration ${unknown.join(", ")}, this version of Paybell knows none after ${newest}: ` +
          "run the newer version that applied it.",
      );
    }
    const missing = migrations.filter((migration) => !applied.has(migration.number));
    const names = missing.map((migration) => migration.name);
    if (missing.length > 0) {
      if (!(await canCreate(client))) throw new MigrationsMissing(names);
      await client.query(
        `CREATE TABLE IF NOT EXISTS migrations (
           number integer PRIMARY KEY, name text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())`,
      );
    }
    for (const migration of missing) await apply(client, migration);
    if (serviceRole !== undefined) await grantToService(client, serviceRole);
    return names;
  });
}

/** The names of those that this database lacks; a newer one lacks none. */
export async function missingMigrations(client: ClientBase): Promise<readonly string[]> {
  const applied = await appliedMigrations(client);
  return (await readMigrations(migrationsFolder)).filter(({ number }) => !applied.has(number)).map(({ name }) => name);
}

/** @returns their numbers; none in a database that was never migrated */
async function appliedMigrations(client: ClientBase): Promise<ReadonlySet<number>> {
  const { rows: tables } = await client.query("SELECT WHERE to_regclass('migrations') IS NOT NULL");
  if (tables.length === 0) return new Set();
  const { rows } = await client.query<{ number: number }>("SELECT number FROM migrations");
  return new Set(rows.map(({ number }) => number));
}

async function canCreate(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    "SELECT has_schema_privilege(current_schema(), 'CREATE') AS may",
  );
  return rows[0]?.may === true;
}

async function roleOf(databaseUrl: string): Promise<string> {
  return withClient(databaseUrl, async (client) => {
    const { rows } = await client.query<{ role: string }>("SELECT current_user AS role");
    return rows[0]?.role ?? "";
  });
}

async function withClient<Result>(connectionString: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString, application_name: "paybell migrate" });
  await client.connect();
  try {
    return await use(client);
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
    await client.query(migration.sql);
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
      return { number: Number.parseInt(name.slice(0, 4), 10), name, sql, isBreaking: sql.startsWith("--! breaking") };
    }),
  );
}
