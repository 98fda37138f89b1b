import { afterAll, onTestFinished } from "vitest";
import { type Database, openDatabase } from "../../packages/server/src/store/database/database.ts";
import { createDatabase } from "./database.ts";

interface TestDatabaseOptions {
  /** Default: a superuser, because tests look everywhere. */
  readonly as?: "service";
  /** Default 12. */
  readonly connectionsMax?: number;
}

/** The service's connections to a database of the test file's own. Both end after the file's last test. */
export async function openTestDatabase(options: TestDatabaseOptions = {}): Promise<Database> {
  const { connections, end } = await open(options);
  afterAll(end);
  return connections;
}

/** The same for one test: both end after it. */
export async function openOwnDatabase(options: TestDatabaseOptions = {}): Promise<Database> {
  const { connections, end } = await open(options);
  onTestFinished(end);
  return connections;
}

/** Waits for a connection as long as a machine with other work needs. */
export function connectionsTo(url: string, connectionsMax: number): Database {
  return openDatabase(url, { connectionsMax, connectTimeoutMs: 600_000, onIdleError: () => undefined });
}

async function open({ as, connectionsMax = 12 }: TestDatabaseOptions) {
  const database = await createDatabase();
  const url = as === "service" ? database.serviceUrl : database.url;
  const connections = connectionsTo(url, connectionsMax);
  const end = async () => {
    await connections.close();
    await database.drop();
  };
  return { connections, end };
}
