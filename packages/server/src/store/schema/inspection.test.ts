import { Client } from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { createDatabase, withAdmin } from "../../../../../test/support/database.ts";
import { inspectDatabase } from "./inspection.ts";

test("the clocks are compared at the answer, however long the other answers take", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const client = new Client({ connectionString: database.url });
  await client.connect();
  await client.query(`
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql
      AS $$ SELECT '2026-01-31T00:00:00Z'::timestamptz $$;
    DO $$ BEGIN
      EXECUTE format('ALTER DATABASE %I SET search_path = public, pg_catalog', current_database());
    END $$`);
  await client.end();
  // The database's clock stands still. Ours advances by a second with each answer.
  vi.useFakeTimers({ toFake: ["Date"], now: Date.parse("2026-01-31T00:00:00Z") });
  const { query } = Client.prototype;
  async function queryForASecond(this: Client, ...asked: unknown[]): Promise<unknown> {
    const answer: unknown = await query.apply(this, asked as never);
    vi.setSystemTime(Date.now() + 1_000);
    return answer;
  }
  const slow = vi.spyOn(Client.prototype, "query").mockImplementation(queryForASecond as never);
  onTestFinished(() => {
    slow.mockRestore();
    vi.useRealTimers();
  });
  const { clockAheadMs } = await inspectDatabase(database.url);
  expect(clockAheadMs).toBe(-500);
});

test("the value that shows whether the master key is right is found among others", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  await withAdmin(database.url, (client) =>
    client.query("INSERT INTO sealed_values (name, sealed) VALUES ('another', 'no'), ('check', 'yes'), ('more', 'no')"),
  );
  expect(await inspectDatabase(database.url)).toMatchObject({ masterKeyCheck: Buffer.from("yes") });
});
