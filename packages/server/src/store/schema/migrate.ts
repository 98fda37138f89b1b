import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type { Client, ClientBase } from "pg";
import { messageOf } from "../../errors.ts";
import { withClient } from "../database/client.ts";
import { copyReferenceTables, enterHome, schemasOfHomes } from "../database/homes.ts";
import { grantToService } from "../database/service-role.ts";
import { isDeadlock } from "../database/transaction.ts";

/**
 * One numbered SQL file. Its first line may be `--! breaking`: versions without it cannot run on the schema that it
 * makes; or `--! homes`: it is applied to each home.
 */
interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly isBreaking: boolean;
  readonly isOfHomes: boolean;
  /** SHA-256 of the file, in hexadecimal: a released migration never changes. */
  readonly sha256: string;
}

export interface SchemaState {
  /** Applied migrations: 0 before the first start. */
  readonly applied: number;
  readonly missing: number;
  /** Applied migrations of a newer version, none of which is breaking: this version runs beside them. */
  readonly newer: number;
}

/** This version can neither use the database's schema nor upgrade it. */
export class IncompatibleSchema extends Error {
  override readonly name = "IncompatibleSchema";
  readonly code = "incompatible_schema";
  readonly remedy: string;

  constructor(message: string, remedy: string) {
    super(message);
    this.remedy = remedy;
  }
}

/** The next migration removes something that older running instances need. */
export class OlderInstancesRunning extends Error {
  override readonly name = "OlderInstancesRunning";
  readonly code = "older_instances_running";
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
  /** The URL with the role that runs the service. */
  readonly databaseUrl: string;
  /** The URL with the role that owns the schema; without it, that is the same role. */
  readonly ownerUrl?: string | null;
  /** The retention of the audit, which the table enforces. Absent: as it is. */
  readonly auditDays?: number;
}

const migrationsFolder = new URL("migrations/", import.meta.url);
// An arbitrary number, the same in every version of the service.
const migrationLock = 7_420_001;
const deadlocksMax = 10;

/**
 * Upgrades the schema to this version, as its owner, and grants the service's role its rights.
 *
 * @throws MigrationsMissing without the owner's URL, if the service's role may not change the schema
 */
export async function prepareSchema({
  databaseUrl,
  ownerUrl = null,
  auditDays,
}: SchemaUrls): Promise<readonly string[]> {
  const names =
    ownerUrl === null
      ? await migrate(databaseUrl)
      : await migrate(ownerUrl, migrationsFolder, await roleOf(databaseUrl));
  if (auditDays !== undefined) await keepAudit(ownerUrl ?? databaseUrl, auditDays);
  return names;
}

/** Only the owner may: the service's role cannot shorten what it cannot delete. */
async function keepAudit(connectionString: string, days: number): Promise<void> {
  await withClient(migrator(connectionString), async (client) => {
    const { rows } = await client.query("SELECT WHERE has_table_privilege('audit_start', 'UPDATE')");
    if (rows.length > 0) await client.query("UPDATE audit_start SET days = $1 WHERE days <> $1", [days]);
  });
}

/**
 * Upgrades the schema to this version: each missing migration in a transaction of its own, one instance at a time.
 *
 * @param folder of the migrations; tests pass another one
 * @param serviceRole gets the rights to run the service
 * @throws PostgresTooOld before anything is changed
 * @throws IncompatibleSchema after a breaking migration of a newer version, or if the database is another program's
 * @throws OlderInstancesRunning before a breaking migration, while an instance holds a lease, or did shortly before
 * @returns the names of the migrations applied now
 */
export async function migrate(
  connectionString: string,
  folder: URL = migrationsFolder,
  serviceRole?: string,
): Promise<readonly string[]> {
  const migrations = await readMigrations(folder);
  return withClient(migrator(connectionString), async (client) => {
    await requirePostgresVersion(client);
    await client.query("SELECT pg_advisory_lock($1)", [migrationLock]);
    const applied = await readApplied(client);
    const incompatible = incompatibility(migrations, applied);
    if (incompatible !== undefined) throw incompatible;
    const numbers = new Set(applied.map(({ number }) => number));
    const missing = migrations.filter((migration) => !numbers.has(migration.number));
    const names = missing.map((migration) => migration.name);
    if (missing.length > 0) {
      if (!(await canCreate(client))) throw new MigrationsMissing(names);
      await client.query(
        `CREATE TABLE IF NOT EXISTS migrations (
           number integer PRIMARY KEY, name text NOT NULL, sha256 text NOT NULL, breaking boolean NOT NULL,
           applied_at timestamptz NOT NULL DEFAULT now())`,
      );
    }
    for (const migration of missing) await apply(client, migration);
    if (serviceRole !== undefined) await grantToService(client, serviceRole);
    return names;
  });
}

async function canCreate(client: ClientBase): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    "SELECT has_schema_privilege(current_schema(), 'CREATE') AS may",
  );
  return rows[0]?.may === true;
}

const migrator = (connectionString: string) => ({ connectionString, application_name: "paybell migrate" });

async function roleOf(databaseUrl: string): Promise<string> {
  return withClient(migrator(databaseUrl), async (client) => {
    const { rows } = await client.query<{ role: string }>("SELECT current_user AS role");
    return rows[0]?.role ?? "";
  });
}

/** Inspects the schema without changing it. */
export async function inspectSchema(client: Client): Promise<SchemaState | IncompatibleSchema> {
  const migrations = await readMigrations(migrationsFolder);
  const applied = await readApplied(client);
  const newer = newerThan(migrations, applied).length;
  const missing = migrations.length - (applied.length - newer);
  return incompatibility(migrations, applied) ?? { applied: applied.length, missing, newer };
}

type Applied = Readonly<{ number: number; name: string; sha256?: string; breaking?: boolean }>;

/** None in a database that was never migrated. Read as JSON, because another program's table has other columns. */
async function readApplied(client: Client): Promise<readonly Applied[]> {
  const { rows: tables } = await client.query("SELECT WHERE to_regclass('migrations') IS NOT NULL");
  if (tables.length === 0) return [];
  const { rows } = await client.query<{ row: Applied }>("SELECT to_jsonb(m) AS row FROM migrations m");
  return rows.map(({ row }) => row);
}

function incompatibility(
  migrations: readonly Migration[],
  applied: readonly Applied[],
): IncompatibleSchema | undefined {
  if (applied.some(({ number, name }) => typeof number !== "number" || typeof name !== "string")) {
    const remedy = "Give Paybell a database of its own, and name that one by DATABASE_URL.";
    return new IncompatibleSchema("The database has another program's table `migrations`.", remedy);
  }
  const newer = newerThan(migrations, applied);
  const breaking = newer.filter((migration) => migration.breaking === true).map(({ name }) => name);
  if (breaking.length > 0) {
    const message = `The database has the breaking migration ${breaking.join(", ")} of a newer version of Paybell.`;
    return new IncompatibleSchema(message, "Run the version that applied it, or restore a backup of before.");
  }
  const ours = new Map(migrations.map(({ number, sha256 }) => [number, sha256]));
  const other = applied.find(
    (migration) => !newer.includes(migration) && ours.get(migration.number) !== migration.sha256,
  );
  if (other === undefined) return undefined;
  return new IncompatibleSchema(
    `The database was made by a build of Paybell that was never released: its ${other.name} has other content.`,
    "There is no upgrade from it. Use a new database; for a sandbox, delete the folder .paybell.",
  );
}

/** Migrations that a newer version has applied: this one was put back in its place, or has not been replaced yet. */
function newerThan(migrations: readonly Migration[], applied: readonly Applied[]): readonly Applied[] {
  const newest = migrations.at(-1)?.number ?? 0;
  return applied.filter(({ number }) => number > newest);
}

/** Applies one migration, again after each deadlock: an instance that runs beside it locks the tables in another order. */
async function apply(client: Client, migration: Migration): Promise<void> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await applyOnce(client, migration);
    } catch (error) {
      // If the connection is lost, PostgreSQL rolls back by itself.
      await client.query("ROLLBACK").catch(() => undefined);
      if (error instanceof OlderInstancesRunning) throw error;
      if (isDeadlock(error) && tries < deadlocksMax) continue;
      const failed = `Migration ${migration.name} failed and was rolled back`;
      throw new Error(`${failed}: ${messageOf(error)}.`, { cause: error });
    }
  }
}

async function applyOnce(client: Client, migration: Migration): Promise<void> {
  await client.query("BEGIN");
  // A session that waits for a table lock delays everything after it.
  await client.query("SET LOCAL lock_timeout = '5s'");
  if (migration.isBreaking) await requireNoHolders(client, migration.name);
  const schemas = migration.isOfHomes ? await schemasOfHomes(client) : [];
  // Citus forwards a statement to its nodes together with everything sent with it.
  const statements = statementsOf(migration.sql);
  const inSteps = async () => {
    for (const statement of statements) await client.query(statement);
  };
  if (schemas.length === 0) await inSteps();
  for (const schema of schemas) {
    await enterHome(client, schema);
    await inSteps();
  }
  if (!migration.isOfHomes) await copyReferenceTables(client);
  if (schemas.length > 0) await client.query("SET LOCAL search_path TO DEFAULT");
  const { number, name, sha256, isBreaking } = migration;
  const values = [number, name, sha256, isBreaking];
  await client.query("INSERT INTO migrations (number, name, sha256, breaking) VALUES ($1, $2, $3, $4)", values);
  await client.query("COMMIT");
}

/** An instance acquires a lease only after it has migrated, so current leases belong to earlier versions. */
async function requireNoHolders(client: Client, migration: string): Promise<void> {
  const { rows: tables } = await client.query("SELECT FROM pg_tables WHERE tablename = 'leases'");
  if (tables.length === 0) return;
  // No lease can be inserted or renewed until this transaction has ended.
  await client.query("LOCK TABLE leases IN SHARE MODE");
  const { rows } = await client.query<{ host: string }>(
    "SELECT host FROM leases WHERE beaten_at > now() - interval '8 seconds' ORDER BY id",
  );
  if (rows.length > 0) throw new OlderInstancesRunning(migration, [...new Set(rows.map(({ host }) => host))]);
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
        sha256: createHash("sha256").update(sql).digest("hex"),
        isBreaking: /\bbreaking\b/.test(marks),
        isOfHomes: /\bhomes\b/.test(marks),
      };
    }),
  );
}

/** A statement ends at a `;` at the end of a line, except within `$$`. */
export function statementsOf(sql: string): readonly string[] {
  const marked = sql.split("$$").map((part, at) => (at % 2 === 0 ? part.replaceAll(/;$/gm, ";\0") : part));
  const statements = marked.join("$$").split("\0");
  const isMore = (line: string) => line.trim() !== "" && !line.trimStart().startsWith("--");
  // After the last one there may be a comment.
  return statements.map((text) => text.trim()).filter((text) => text.split("\n").some(isMore));
}

export interface PostgresVersion {
  /** Such as 18.4. */
  readonly version: string;
  /** 180004 for 18.4. */
  readonly versionNumber: number;
}

const versionMin = 150_000;

/** This PostgreSQL lacks what the service uses. */
export class PostgresTooOld extends Error {
  override readonly name = "PostgresTooOld";
  readonly code = "postgres_too_old";
  readonly remedy = "Use PostgreSQL 15 or later.";

  constructor(version: string) {
    super(`This is PostgreSQL ${version}, which is too old.`);
  }
}

export function isTooOld({ versionNumber }: PostgresVersion): boolean {
  return versionNumber < versionMin;
}

/** @throws PostgresTooOld */
async function requirePostgresVersion(client: ClientBase): Promise<void> {
  const found = await readPostgresVersion(client);
  if (isTooOld(found)) throw new PostgresTooOld(found.version);
}

export async function readPostgresVersion(client: ClientBase): Promise<PostgresVersion> {
  const { rows } = await client.query<PostgresVersion>(`
    SELECT current_setting('server_version') AS version,
      current_setting('server_version_num')::integer AS "versionNumber"`);
  const [found] = rows;
  if (found === undefined) throw new Error("the database gave no answer");
  return found;
}
