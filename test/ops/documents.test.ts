import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { expect, inject, test } from "vitest";
import { migrate } from "../../packages/server/src/store/schema/migrate.ts";
import { databaseUrl, withAdmin } from "../support/database.ts";
import { repository } from "./files.ts";

test("the role and the database of the guide to production are all that the service needs", async () => {
  const guide = readFileSync(join(repository, "docs/operator/production.md"), "utf8");
  const [, sql = ""] = /```sql\n(CREATE ROLE [\s\S]*?)```/.exec(guide) ?? [];
  const name = `paybell_${randomBytes(6).toString("hex")}`;
  const statements = sql
    .replaceAll("paybell", name)
    .split(";")
    .filter((statement) => statement.trim() !== "");
  expect(statements).toHaveLength(2);
  const serverUrl = inject("databaseServerUrl");
  try {
    await withAdmin(serverUrl, async (admin) => {
      for (const statement of statements) await admin.query(statement);
    });
    const [, password = ""] = /PASSWORD '([^']+)'/.exec(sql) ?? [];
    const login = `${name}:${encodeURIComponent(password)}@`;
    const url = databaseUrl(serverUrl, name).replace(/^(postgres:\/\/)[^@/]*@?/, `$1${login}`);
    expect((await migrate(url)).length).toBeGreaterThan(0);
    const client = new Client({ connectionString: url });
    await client.connect();
    expect((await client.query("SELECT current_user AS name")).rows).toEqual([{ name }]);
    await client.end();
  } finally {
    await withAdmin(serverUrl, async (admin) => {
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      await admin.query(`DROP ROLE IF EXISTS ${name}`);
    });
  }
});
