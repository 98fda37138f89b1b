import { resolve } from "node:path";
import { type Config, ConfigError } from "../config.ts";
import { hasData } from "../postgres/data-location.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../postgres/embedded.ts";
import type { SchemaUrls } from "../store/schema/migrate.ts";
import { unlessAborted } from "./signals.ts";

export function embeddedUrls(postgres: EmbeddedPostgres): SchemaUrls {
  return { databaseUrl: postgres.connectionString, ownerUrl: postgres.ownerConnectionString };
}

type DatabaseConfig = Pick<Config, "databaseUrl" | "migrationDatabaseUrl" | "home">;

/**
 * Runs a command with the configured database, or with the embedded one, which then runs for that time.
 *
 * @param signal the command is not waited for any longer
 */
export async function withDatabase<Result>(
  config: DatabaseConfig,
  use: (urls: SchemaUrls) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const { databaseUrl, migrationDatabaseUrl } = config;
  const run = (urls: SchemaUrls) => (signal === undefined ? use(urls) : unlessAborted(signal, use(urls)));
  if (databaseUrl !== null) return run({ databaseUrl, ownerUrl: migrationDatabaseUrl });
  const embedded = await startEmbeddedPostgres({ home: resolve(config.home), log: () => undefined });
  try {
    return await run(embeddedUrls(embedded));
  } finally {
    await embedded.stop();
  }
}

/** The same for a command that needs what a service has stored: it creates no database. */
export async function withExistingDatabase<Result>(
  config: DatabaseConfig,
  use: (urls: SchemaUrls) => Promise<Result>,
  signal?: AbortSignal,
): Promise<Result> {
  const home = resolve(config.home);
  if (config.databaseUrl === null && !(await hasData(home))) {
    throw new ConfigError([
      `DATABASE_URL is not set, and ${home} has no data of the sandbox. ` +
        "Set DATABASE_URL to the service's database, or PAYBELL_HOME to the sandbox's folder.",
    ]);
  }
  return withDatabase(config, use, signal);
}
