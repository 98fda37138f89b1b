import type { Config } from "../config.ts";
import { prepareSchema } from "../store/schema/migrate.ts";
import { withDatabase } from "./database-url.ts";

/** `paybell migrate`. @returns the names of the migrations applied now */
export function migrateDatabaseOf(config: Config, signal: AbortSignal): Promise<readonly string[]> {
  return withDatabase(config, prepareSchema, signal);
}
