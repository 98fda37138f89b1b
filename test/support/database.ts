import { randomBytes } from "node:crypto";
import { setTimeout as pause } from "node:timers/promises";
import { Client, type QueryResultRow } from "pg";
import { inject } from "vitest";
import { schemasOfHomes } from "../../packages/server/src/store/database/homes.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The run's PostgreSQL (global-setup.ts), as a URL to its first database; of Citus the coordinator. */
    databaseServerUrl: string;
    /** The same, with the service's login. */
    databaseServiceUrl: string;
    /** The other nodes, with Citus: each has a copy of every database. */
    databaseNodeUrls: readonly string[];
    /** For files that several test files share; removed at the end of the run. Not provided on Citus. */
    runFolder: string;
  }
}

export const templateDatabase = "paybell_template";

/** About 3 s, which a paused machine does not shorten. */
const disconnectLooksMax = 600;

export interface TestDatabase {
  /** As a superuser: tests look everywhere. */
  readonly url: string;
  /** As a service logs in, with a role that reads and writes rows. */
  readonly serviceUrl: string;
  /** Removes the database. Fails when a connection to it is still open: a client or pool that nobody ended. */
  drop(): Promise<void>;
}

/**
 * A separate database with the migrated schema and no rows, cloned from the template; an empty one if it is not to be
 * migrated. Measured: 70 ms by
 * copying its files, 180 ms by PostgreSQL's default, which writes every page to the log.
 */
export async function createDatabase({ isMigrated = true } = {}): Promise<TestDatabase> {
  const serverUrl = inject("databaseServerUrl");
  const urls = [serverUrl, ...inject("databaseNodeUrls")];
  const template = isMigrated ? templateDatabase : "template0";
  const name = `test_${randomBytes(8).toString("hex")}`;
  for (const url of urls) {
    await withAdmin(url, (client) => client.query(`CREATE DATABASE ${name} TEMPLATE ${template} STRATEGY file_copy`));
  }
  return {
    url: databaseUrl(serverUrl, name),
    serviceUrl: databaseUrl(inject("databaseServiceUrl"), name),
    async drop() {
      // Nodes of Citus keep connections to each other, which are not a leak.
      for (const url of urls) await withAdmin(url, (client) => drop(client, name, urls.length > 1));
    },
  };
}

/** The same server, another database. */
export function databaseUrl(serverUrl: string, database: string): string {
  return serverUrl.replace(/^(postgres:\/\/[^/]*\/)[^?]*/, `$1${database}`);
}

export async function withAdmin<Result>(serverUrl: string, use: (client: Client) => Promise<Result>): Promise<Result> {
  const client = new Client({ connectionString: serverUrl });
  await client.connect();
  try {
    return await use(client);
  } finally {
    await client.end();
  }
}

/**
 * Reads or changes the tables of partners directly: the same in each home, one after the other. Plain PostgreSQL is one
 * home.
 */
export async function inHomes<Result>(
  database: Pick<TestDatabase, "url">,
  use: (client: Client) => Promise<Result>,
): Promise<readonly Result[]> {
  return withAdmin(database.url, async (client) => {
    const schemas = await schemasOfHomes(client);
    if (schemas.length === 0) return [await use(client)];
    const results: Result[] = [];
    for (const schema of schemas) {
      await client.query(`SET search_path = ${schema}, public`);
      results.push(await use(client));
    }
    return results;
  });
}

/** One statement in each home. @returns the rows of all */
export async function queryHomes<Row extends QueryResultRow = Record<string, unknown>>(
  database: Pick<TestDatabase, "url">,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Row[]> {
  return (await inHomes(database, async (client) => (await client.query<Row>(text, [...values])).rows)).flat();
}

async function drop(client: Client, name: string, isCluster: boolean): Promise<void> {
  const open = isCluster ? [] : await connectionsLeft(client, name);
  await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  if (open.length > 0) throw new Error(`connections to the database were left open: ${open.join("; ")}`);
}

/** A backend ends a moment after its client: only one that stays is a leak. */
async function connectionsLeft(client: Client, name: string): Promise<string[]> {
  for (let looks = 1; ; looks += 1) {
    const { rows } = await client.query<{ application_name: string; state: string; query: string }>(
      `SELECT application_name, state, left(query, 120) AS query FROM pg_stat_activity
       WHERE datname = $1 AND backend_type = 'client backend'`,
      [name],
    );
    if (rows.length === 0) return [];
    if (looks > disconnectLooksMax)
      return rows.map((row) => `${row.application_name || "unnamed"} (${row.state}): ${row.query}`);
    await pause(5);
  }
}
