import type { BackupSource } from "../../backups/take.ts";
import { withClient } from "../database/client.ts";

const readSource = `
  SELECT clock_timestamp() AS now, current_setting('server_version') AS version,
    current_setting('server_version_num')::integer / 10000 AS major,
    current_setting('archive_mode') <> 'off' AS archived,
    pg_size_bytes(current_setting('wal_segment_size'))::integer AS segment_bytes,
    ARRAY(SELECT spcname::text FROM pg_tablespace WHERE spcname NOT IN ('pg_default', 'pg_global')) AS tablespaces,
    EXISTS (SELECT FROM pg_extension WHERE extname = 'citus') AS is_cluster,
    to_regclass('migrations') IS NOT NULL AS is_migrated`;

/** Reads what a backup has to know of its server. */
export async function readBackupSource(connectionString: string): Promise<BackupSource> {
  return withClient({ connectionString, query_timeout: 15_000 }, async (client) => {
    const { rows } = await client.query<{
      now: Date;
      version: string;
      major: number;
      archived: boolean;
      segment_bytes: number;
      tablespaces: string[];
      is_cluster: boolean;
      is_migrated: boolean;
    }>(readSource);
    const [row] = rows;
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
