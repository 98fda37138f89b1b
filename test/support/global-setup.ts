import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestProject } from "vitest/node";
import { startEmbeddedPostgres } from "../../packages/server/src/postgres/embedded.ts";
import { prepareSchema } from "../../packages/server/src/store/migrate.ts";
import { databaseUrl, templateDatabase, withAdmin } from "./database.ts";
import { removeLeftovers, testHomePrefix } from "./leftovers.ts";

/**
 * Nothing of a test run needs to survive a power cut. The folder is temporary, so these settings can never meet real
 * data.
 */
const testSettings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  shared_buffers: "128MB",
  max_wal_size: "512MB",
  min_wal_size: "80MB",
  max_connections: "200",
};

/**
 * One PostgreSQL for the whole run, with a migrated template database: about 1 s (measured), once, before the first
 * test. Each test file then clones the template (database.ts).
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  await removeLeftovers();
  const folder = await mkdtemp(join(tmpdir(), testHomePrefix));
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
  project.provide("databaseServerUrl", superuserConnectionString);
  project.provide("databaseServiceUrl", connectionString);
  return async () => {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  };
}

async function makeTemplate(serverUrl: string, serviceUrl: string): Promise<void> {
  await withAdmin(serverUrl, (client) => client.query(`CREATE DATABASE ${templateDatabase}`));
  const [ownerUrl, url] = [serverUrl, serviceUrl].map((one) => databaseUrl(one, templateDatabase));
  await prepareSchema({ databaseUrl: url as string, ownerUrl: ownerUrl as string });
}
