import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { systemClock } from "../../packages/server/src/clock.ts";
import { startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { openDatabase } from "../../packages/server/src/store/database/database.ts";
import { findHomes } from "../../packages/server/src/store/database/homes.ts";
import { migrate, prepareSchema } from "../../packages/server/src/store/schema/migrate.ts";
import { Partitions } from "../../packages/server/src/store/schema/partitions.ts";
import { databaseUrl, templateDatabase, withAdmin } from "./database.ts";
import { parentOfRuns, removeLeftovers, testHomePrefix } from "./leftovers.ts";

/**
 * A test run need not survive a power failure. The folder is temporary, so these settings can never meet real
 * data.
 */
const testSettings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  shared_buffers: "128MB",
  max_wal_size: "512MB",
  min_wal_size: "80MB",
  // Each service may have 17, and a run of tiers has up to twenty at once.
  max_connections: "400",
  // It would change the statistics of a table, and so the plans that a test looks at, at any moment.
  autovacuum: "off",
};

/**
 * One PostgreSQL for the whole run, with a migrated template database: about 1 s (measured), once, before the first
 * test. Each test file then clones the template (database.ts).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeLeftovers();
  const [coordinator, ...workers] = process.env["PAYBELL_TEST_CITUS"]?.split(" ") ?? [];
  project.provide("databaseNodeUrls", workers);
  if (coordinator !== undefined) {
    await makeClusterTemplate(coordinator, workers);
    project.provide("databaseServerUrl", coordinator);
    project.provide("databaseServiceUrl", coordinator);
    return async () => undefined;
  }
  const folder = await mkdtemp(join(await parentOfRuns(), testHomePrefix));
  // The home below it is made with the mode that PostgreSQL's own user needs; this folder has to let it through.
  await chmod(folder, 0o711);
  const lines: string[] = [];
  const postgres = await startEmbeddedPostgres({
    home: join(folder, "home"),
    log: (line) => lines.push(line),
    settings: testSettings,
    systemDirectory: join(folder, "system"),
  });
  const { connectionString, superuserConnectionString } = postgres;
  await makeTemplate(superuserConnectionString, connectionString);
  project.provide("runFolder", folder);
  project.provide("databaseServerUrl", superuserConnectionString);
  project.provide("databaseServiceUrl", connectionString);
  return async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

/** The template on every node of Citus, with its days of history: made by the coordinator, they take seconds. */
async function makeClusterTemplate(coordinator: string, workers: readonly string[]): Promise<void> {
  const urls = [coordinator, ...workers];
  const template = databaseUrl(coordinator, templateDatabase);
  for (const url of urls) {
    await withAdmin(url, (client) => client.query(`CREATE DATABASE ${templateDatabase}`));
    await withAdmin(databaseUrl(url, templateDatabase), (client) => client.query("CREATE EXTENSION citus"));
  }
  await withAdmin(template, async (client) => {
    const { hostname, port } = new URL(coordinator);
    await client.query("SELECT citus_set_coordinator_host($1, $2)", [hostname, Number(port)]);
    for (const worker of workers) {
      const { hostname: host, port: at } = new URL(worker);
      await client.query("SELECT citus_add_node($1, $2)", [host, Number(at)]);
    }
  });
  await migrate(template);
  const database = openDatabase(template, {
    connectionsMax: 4,
    onIdleError: () => undefined,
    homes: await findHomes(template),
  });
  await new Partitions({
    homes: database.homes,
    clock: systemClock,
    historyDays: 90,
    proofDays: 400,
    contents: { isAsCommitted: () => true },
  }).maintain();
  await database.close();
  for (const url of urls) {
    await withAdmin(url, async (client) => {
      await client.query(`ALTER DATABASE ${templateDatabase} ALLOW_CONNECTIONS false`);
      await client.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [
        templateDatabase,
      ]);
    });
  }
}

async function makeTemplate(serverUrl: string, serviceUrl: string): Promise<void> {
  await withAdmin(serverUrl, (client) => client.query(`CREATE DATABASE ${templateDatabase}`));
  const [ownerUrl, url] = [serverUrl, serviceUrl].map((one) => databaseUrl(one, templateDatabase));
  await prepareSchema({ databaseUrl: url as string, ownerUrl: ownerUrl as string });
}
