import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase, withAdmin } from "../../../../test/support/database.ts";
import { type AuditEntry, appendTo, firstHash, verifyAudit } from "../operators/audit.ts";
import { PostgresAudit } from "./audit.ts";
import { type Database, openDatabase } from "./database.ts";

let database: TestDatabase;
let connections: Database;
let audit: PostgresAudit;
beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 8, onIdleError: () => {} });
  audit = new PostgresAudit(connections.pool);
});
afterAll(async () => {
  await connections.close();
  await database.drop();
});

const entry: AuditEntry = {
  atMs: Date.UTC(2026, 0, 31),
  actor: "Ada",
  role: "admin",
  tokenId: "t",
  address: "127.0.0.1",
  action: "changePartner",
  subject: "p",
  before: '{"name":"a"}',
  after: '{"name":"b"}',
};

test("entries that come at the same time form one chain", async () => {
  expect(await verifyAudit(audit)).toEqual({ entries: 0, hash: firstHash });
  await Promise.all(Array.from({ length: 20 }, (_, at) => appendTo(audit, { ...entry, subject: `p${at}` })));
  expect(await verifyAudit(audit)).toMatchObject({ entries: 20 });
});

test("the table itself refuses changes", async () => {
  for (const statement of ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "TRUNCATE audit"]) {
    await expect(connections.pool.query(statement), statement).rejects.toThrow("append-only");
  }
});

test("are found by actor, subject and time, the newest first", async () => {
  await appendTo(audit, { ...entry, actor: "Grace", subject: "other", atMs: entry.atMs + 1_000 });
  expect((await audit.search({ limit: 5 })).map(({ seq }) => seq)).toEqual([21, 20, 19, 18, 17]);
  expect(await audit.search({ actor: "Grace", limit: 5 })).toMatchObject([{ subject: "other" }]);
  expect(await audit.search({ subject: "p3", limit: 5 })).toHaveLength(1);
  expect(await audit.search({ fromMs: entry.atMs + 1, limit: 50 })).toHaveLength(1);
  expect(await audit.search({ toMs: entry.atMs + 1, limit: 50 })).toHaveLength(20);
  expect((await audit.search({ before: 3, limit: 5 })).map(({ seq }) => seq)).toEqual([2, 1]);
});

test.each([
  ["changed", "UPDATE audit SET after = '{}' WHERE seq = 7", 7],
  ["taken out", "DELETE FROM audit WHERE seq = 5", 5],
])("an entry that was %s behind the table's back is found", async (_, statement, brokenAt) => {
  await withAdmin(database.url, async (client) => {
    await client.query("ALTER TABLE audit DISABLE TRIGGER audit_append_only");
    await client.query(statement);
    await client.query("ALTER TABLE audit ENABLE TRIGGER audit_append_only");
  });
  expect(await verifyAudit(audit)).toMatchObject({ brokenAt });
});
