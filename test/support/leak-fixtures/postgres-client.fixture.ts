import { Client } from "pg";
import { test } from "vitest";

test("a client of PostgreSQL that nobody ends", async () => {
  await new Client({ connectionString: process.env["LEAK_FIXTURE_DATABASE"] }).connect();
});
