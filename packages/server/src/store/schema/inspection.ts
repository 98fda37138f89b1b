import type { Client, Pool } from "pg";
import type { BackupSource } from "../../backups/take.ts";
import { within } from "../../clock.ts";
import { withClient } from "../database/client.ts";
import { readExcessRights } from "../database/service-role.ts";
import { planned } from "../database/statement.ts";
import {
  type IncompatibleSchema,
  inspectSchema,
  type PostgresVersion,
  readPostgresVersion,
  type SchemaState,
} from "./migrate.ts";

/** The results of `paybell check` for a database. */
export interface Inspection extends PostgresVersion {
  readonly durability: readonly { readonly name: string; readonly value: string }[];
  readonly isReplica: boolean;
  /** The difference between the database's clock and ours. */
  readonly clockAheadMs: number;
  readonly listenWorks: boolean;
  readonly canCreate: boolean;
  /** Tables of which the role could change more than the service does; none for the schema's owner, who may all. */
  readonly excessRights: readonly string[];
  readonly schema: SchemaState | IncompatibleSchema;
  /** Undefined if no service was started on this database yet. */
  readonly masterKeyCheck: Buffer | undefined;
}

const listenTimeoutMs = 2_000;

/** Whether the role of these connections could change what it must not. */
export async function mayChangeSchema(pool: Pick<Pool, "query">): Promise<boolean> {
  const { rows } = await pool.query<{ may: boolean }>("SELECT has_schema_privilege(current_schema(), 'CREATE') AS may");
  return rows[0]?.may === true;
}

export async function inspectDatabase(connectionString: string): Promise<Inspection> {
  return withClient({ connectionString, query_timeout: 5_000 }, async (client) => {
    const askedMs = Date.now();
    const { rows } = await client.query<{
      replica: boolean;
      now: Date;
      can_create: boolean;
      known: boolean;
    }>(`
      SELECT pg_is_in_recovery() AS replica, clock_timestamp() AS now,
        has_schema_privilege(current_schema(), 'CREATE') AS can_create,
        to_regclass('sealed_values') IS NOT NULL AS known`);
    const [row] = rows;
    const answeredMs = Date.now();
    if (row === undefined) throw new Error("the database gave no answer");
    const settings = await client.query<{ name: string; value: string }>(
      `SELECT name, setting AS value FROM pg_settings
       WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') ORDER BY name`,
    );
    const kept = row.known
      ? await client.query<{ sealed: Buffer }>("SELECT sealed FROM sealed_values WHERE name = 'check'")
      : { rows: [] };
    const schema = await inspectSchema(client);
    return {
      ...(await readPostgresVersion(client)),
      durability: settings.rows,
      isReplica: row.replica,
      clockAheadMs: row.now.getTime() - (askedMs + answeredMs) / 2,
      listenWorks: await listens(client),
      canCreate: row.can_create,
      excessRights: row.can_create || !row.known ? [] : await readExcessRights(client),
      schema,
      masterKeyCheck: kept.rows[0]?.sealed,
    };
  });
}

async function listens(client: Client): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<true>();
  client.on("notification", () => resolve(true));
  await client.query("LISTEN paybell_check");
  await client.query("NOTIFY paybell_check");
  return (await within(listenTimeoutMs, promise)) ?? false;
}

const readSource = planned<{
  now: Date;
  version: string;
  major: number;
  archived: boolean;
  segment_bytes: number;
  tablespaces: string[];
  is_cluster: boolean;
  is_migrated: boolean;
}>(`
  SELECT clock_timestamp() AS now, current_setting('server_version') AS version,
    current_setting('server_version_num')::integer / 10000 AS major,
    current_setting('archive_mode') <> 'off' AS archived,
    pg_size_bytes(current_setting('wal_segment_size'))::integer AS segment_bytes,
    ARRAY(SELECT spcname::text FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')) AS tablespaces,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS is_cluster,
    to_regclass('migrations') IS NOT NULL AS is_migrated`);

/** Reads what a backup has to know of its server. */
export async function readBackupSource(connectionString: string): Promise<BackupSource> {
  return withClient({ connectionString, query_timeout: 15_000 }, async (client) => {
    const row = await readSource.first(client);

    if (row === undefined) throw new Error("the database gave no answer");
    const migrations = row.is_migrated
      ? await client.query<{ number: number }>("SELECT max(number) AS number FROM migrations")
      : { rows: [] };
    return {
      nowMs: row.now.getTime(),
      version: row.version,
      major: row.major,
      schema: migrations.rows[0]?.number ?? 0,
      walArchived: row.archived,
      walSegmentBytes: row.segment_bytes,
      tablespaces: row.tablespaces,
      isCluster: row.is_cluster,
    };
  });
}
