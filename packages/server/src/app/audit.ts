import type { Config } from "../config.ts";
import { type Verified, verifyAudit } from "../operators/audit.ts";
import { PostgresAudit } from "../store/audit.ts";
import { openDatabase } from "../store/database.ts";
import { withDatabaseUrl } from "./database-url.ts";

/** `paybell audit verify`: reads the whole chain of the database, and changes nothing. */
export function verifyAuditOf(config: Config): Promise<Verified> {
  return withDatabaseUrl(config, async (url) => {
    const database = openDatabase(url, { connectionsMax: 4, onIdleError: () => undefined });
    try {
      return await verifyAudit(new PostgresAudit(database.pool));
    } finally {
      await database.close();
    }
  });
}
