import { resolve } from "node:path";
import type { Config } from "../config.ts";
import { startEmbeddedPostgres } from "../postgres/embedded.ts";

/** For a command that only looks: the configured database, or the embedded one, which runs for as long as it takes. */
export async function withDatabaseUrl<Result>(
  config: Pick<Config, "databaseUrl" | "home">,
  use: (url: string) => Promise<Result>,
): Promise<Result> {
  if (config.databaseUrl !== null) return use(config.databaseUrl);
  const embedded = await startEmbeddedPostgres({ home: resolve(config.home), log: () => undefined });
  try {
    return await use(embedded.connectionString);
  } finally {
    await embedded.stop();
  }
}
