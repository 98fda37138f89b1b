import { afterAll } from "vitest";
import { type Database, openDatabase } from "../../packages/server/src/store/database/database.ts";
import { createDatabase } from "./database.ts";

/** The service's connections to a database of the test file's own. Both end after the file's last test. */
export async function openTestDatabase(
  options: {
    /** Default: a superuser, because tests look everywhere. */
    readonly as?: "service";
    /** Default 12. */
    readonly connectionsMax?: number;
  } = {},
): Promise<Database> {
  const database = await createDatabase();
  const url = options.as === "service" ? database.serviceUrl : database.url;
  const connections = openDatabase(url, { connectionsMax: options.connectionsMax ?? 12, onIdleError: () => undefined });
  afterAll(async () => {
    await connections.close();
    await database.drop();
  });
  return connections;
}
