import type { ClientBase } from "pg";

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
export async function requirePostgresVersion(client: ClientBase): Promise<void> {
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
