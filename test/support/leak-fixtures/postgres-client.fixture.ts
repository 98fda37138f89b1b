import { Client } from "pg";
import { test } from "vitest";

test("a client of PostgreSQL that is never ended", async () => {
  await new Client({ connectionString: process.env["LEAK_FIXTURE_DATABASE"] }).connect();
});
