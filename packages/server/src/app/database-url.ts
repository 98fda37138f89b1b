import { resolve } from "node:path";
import type { Config } from "../config.ts";
import { type EmbeddedPostgres, startEmbeddedPostgres } from "../postgres/embedded.ts";
import type { SchemaUrls } from "../store/schema/migrate.ts";

export function embeddedUrls(postgres: EmbeddedPostgres): SchemaUrls {
  return { databaseUrl: postgres.connectionString, ownerUrl: postgres.ownerConnectionString };
}

/** Runs a command with the configured database, or with the embedded one, which then runs for that time. */
export async function withDatabase<Result>(
  config: Pick<Config, "databaseUrl" | "migrationDatabaseUrl" | "home">,
  use: (urls: SchemaUrls) => Promise<Result>,
): Promise<Result> {
  const { databaseUrl, migrationDatabaseUrl } = config;
  if (databaseUrl !== null) return use({ databaseUrl, ownerUrl: migrationDatabaseUrl });
  const embedded = await startEmbeddedPostgres({ home: resolve(config.home), log: () => undefined });
  try {
    return await use(embeddedUrls(embedded));
  } finally {
    await embedded.stop();
  }
}
