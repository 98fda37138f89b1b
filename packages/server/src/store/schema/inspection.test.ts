import { Client } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createDatabase } from "../../../../../test/support/database.ts";
import { inspectDatabase } from "./inspection.ts";

test("the clocks are compared at the answer, however long the other answers take", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`
    CREATE VIEW public.pg_settings AS SELECT s.* FROM pg_catalog.pg_settings s, pg_sleep(2);
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$`);
  await client.end();
  const { clockAheadMs } = await inspectDatabase(database.url);
  expect(Math.abs(clockAheadMs)).toBeLessThan(500);
});
