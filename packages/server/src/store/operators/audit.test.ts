import type { Pool } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectionsTo, openOwnDatabase } from "../../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase, withAdmin } from "../../../../../test/support/database.ts";
import {
  type AuditEntry,
  type AuditRecord,
  type AuditStore,
  appendTo,
  dropOldAudit,
  exportedAfter,
  firstHash,
  verifyAudit,
} from "../../operators/audit.ts";
import type { Database } from "../database/database.ts";
import { PostgresAudit } from "./audit.ts";

let database: TestDatabase;
let connections: Database;
let audit: PostgresAudit;
beforeAll(async () => {
  database = await createDatabase();
  connections = connectionsTo(database.url, 8);
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
  expect(await verifyAudit(audit)).toEqual({ entries: 0, from: 1, hash: firstHash });
  await Promise.all(Array.from({ length: 20 }, (_, at) => appendTo(audit, { ...entry, subject: `p${at}` })));
  expect(await verifyAudit(audit)).toMatchObject({ entries: 20 });
});

test("an entry that was cut amid a character follows from the one before, as any other", async () => {
  const ownConnections = await openOwnDatabase();
  const ownAudit = new PostgresAudit(ownConnections.pool);
  await appendTo(ownAudit, { ...entry, after: `${"😀".slice(0, 1)}…` });
  const verified = await verifyAudit(ownAudit);
  expect(verified).toMatchObject({ entries: 1 });
  expect(verified.brokenAt).toBeUndefined();
});

test("the table itself refuses changes", async () => {
  for (const statement of ["UPDATE audit SET actor = 'x'", "DELETE FROM audit", "TRUNCATE audit"]) {
    await expect(connections.pool.query(statement), statement).rejects.toThrow("append-only");
  }
});

test("the table refuses a number that does not follow the last one", async () => {
  for (const seq of ["max(seq) + 2", "9223372036854775807", "max(seq)"]) {
    const insert = `
      INSERT INTO audit SELECT n.seq, at_ms, actor, role, token_id, address, action, subject, before, after, hash
      FROM audit, (SELECT ${seq} AS seq FROM audit) AS n LIMIT 1`;
    await expect(connections.pool.query(insert), seq).rejects.toThrow("follows the last one");
  }
});

test("are found by actor, subject and time, the newest first", async () => {
  await appendTo(audit, { ...entry, actor: "Grace", subject: "other", atMs: entry.atMs + 1_000 });
  expect((await audit.search({ limit: 5 })).map(({ seq }) => seq)).toEqual([21, 20, 19, 18, 17]);
  expect(await audit.search({ actor: "Grace", limit: 5 })).toMatchObject([{ subject: "other" }]);
  expect(await audit.search({ subject: "p3", limit: 5 })).toHaveLength(1);
  expect(await audit.search({ fromMs: entry.atMs + 1_000, limit: 50 })).toHaveLength(1);
  expect(await audit.search({ toMs: entry.atMs + 1_000, limit: 50 })).toHaveLength(20);
  expect((await audit.search({ before: 3, limit: 5 })).map(({ seq }) => seq)).toEqual([2, 1]);
  await appendTo(audit, { ...entry, action: "rotateKey", tokenId: "another", address: "198.51.100.7" });
  for (const search of [{ action: "rotateKey" }, { tokenId: "another" }, { address: "198.51.100.7" }]) {
    expect(await audit.search({ ...search, limit: 50 }), JSON.stringify(search)).toMatchObject([{ seq: 22 }]);
  }
});

test("every entry is exported in its order, a line each", async () => {
  const lines: string[] = [];
  for await (const page of exportedAfter(audit, 20, "json-lines")) lines.push(...page.lines.trimEnd().split("\n"));
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ seq: 21, actor: "Grace" }, { seq: 22 }]);
});

test("entries whose time is over are dropped, and the chain goes on from the last of them", async () => {
  const dayMs = 86_400_000;
  const laterMs = entry.atMs + 1_000 * dayMs;
  const before = await verifyAudit(audit);
  await connections.pool.query("UPDATE audit_start SET days = 90");
  expect(await dropOldAudit(audit, { nowMs: () => laterMs }, 1_000)).toBe(0);
  await withAdmin(database.serviceUrl, async (service) => {
    await expect(service.query("SELECT drop_audit_before($1, 10)", [entry.atMs])).rejects.toThrow("entry of its own");
    await expect(service.query("SELECT drop_audit_before($1, 10)", [Date.now()])).rejects.toThrow("for 90 days");
    await expect(service.query("UPDATE audit_start SET seq = 100")).rejects.toMatchObject({ code: "42501" });
  });
  // While it is verified: neither the dropped entries nor what follows them is taken for a gap.
  let dropped: number | undefined;
  const meanwhile: typeof audit.following = async (seq, limit) => {
    dropped ??= await dropOldAudit(audit, { nowMs: () => laterMs + 500 }, 1_000);
    return await audit.following(seq, limit);
  };
  const start = () => audit.start();
  const sealedFrom = () => audit.sealedFrom();
  expect(await verifyAudit({ following: meanwhile, start, sealedFrom })).not.toHaveProperty("brokenAt");
  expect(dropped).toBe(20);
  const [latest] = await audit.search({ limit: 1 });
  expect(latest).toMatchObject({ seq: 23, actor: "paybell", action: "dropOldAudit" });
  expect(JSON.parse(latest?.after ?? "")).toMatchObject({ entries: 20 });
  expect(await verifyAudit(audit)).toEqual({ entries: 3, from: 21, hash: latest?.hash });
  expect(before).toMatchObject({ entries: 22, from: 1 });
  // One that was noted before it was dropped is no longer compared, and any that is there still is.
  for (const [seq, hash, isMissed] of [
    [5, "dropped", false],
    [22, before.hash, false],
    [22, "another", true],
    [24, latest?.hash ?? "", true],
  ] as const) {
    expect((await verifyAudit(audit, { expect: { seq, hash } })).unexpected, String(seq)).toBe(isMissed || undefined);
  }
  await expect(connections.pool.query("DELETE FROM audit WHERE seq = 21")).rejects.toThrow("append-only");
});

const columns = ["actor", "role", "token_id", "address", "action", "subject", "before", "after"];

test.each([...columns.map((column) => [column, "'x'"]), ["at_ms", "at_ms + 1"]])(
  "an entry whose %s was changed behind the table's back is found",
  async (column, value) => {
    const client = await connections.pool.connect();
    await client.query("BEGIN");
    await client.query("ALTER TABLE audit DISABLE TRIGGER USER");
    await client.query(`UPDATE audit SET ${column} = ${value} WHERE seq = 22`);
    const verified = await verifyAudit(new PostgresAudit(client as unknown as Pool));
    await client.query("ROLLBACK");
    client.release();
    expect(verified).toMatchObject({ brokenAt: 22 });
    expect(await verifyAudit(audit)).not.toHaveProperty("brokenAt");
  },
);

test("the drop has an entry of its own, which stays, and the table enforces the retention", async () => {
  const old = await openOwnDatabase();
  const alone = new PostgresAudit(old.pool);
  for (let at = 0; at < 3; at += 1) await appendTo(alone, entry);
  const clock = { nowMs: () => entry.atMs + 100 * 86_400_000 };
  await expect(dropOldAudit(alone, clock, 90)).rejects.toThrow("kept for 1095 days");
  await old.pool.query("UPDATE audit_start SET days = 90");
  expect(await dropOldAudit(alone, clock, 90)).toBe(3);
  expect(await dropOldAudit(alone, clock, 90)).toBe(0);
  expect(await appendTo(alone, entry)).toMatchObject({ seq: 5 });
  expect(await verifyAudit(alone)).toMatchObject({ entries: 2, from: 4 });
});

test("a chain of several pages is verified to its end", async () => {
  const records: AuditRecord[] = [];
  const store: Pick<AuditStore, "append" | "following" | "start" | "sealedFrom"> = {
    append: async (added, hash) => {
      const seq = records.length + 1;
      const record = { ...added, seq, hash: hash(records.at(-1)?.hash ?? firstHash, seq) };
      records.push(record);
      return record;
    },
    following: async (seq, limit) => records.slice(seq, seq + limit).map((record) => ({ ...record, mac: null })),
    sealedFrom: async () => undefined,
    start: async () => ({ seq: 0, hash: firstHash }),
  };
  for (let at = 0; at < 2_500; at += 1) await appendTo(store, { ...entry, subject: `p${at}` });
  expect(await verifyAudit(store)).toEqual({ entries: 2_500, from: 1, hash: records.at(-1)?.hash });
  const exported: number[] = [];
  for await (const { lines } of exportedAfter(store, 0, "json-lines")) {
    exported.push(
      ...lines
        .trimEnd()
        .split("\n")
        .map((line) => (JSON.parse(line) as AuditRecord).seq),
    );
  }
  expect(exported).toEqual(records.map(({ seq }) => seq));
  const forger = {
    append: async (added: AuditEntry, hash: (previous: string, seq: number) => string) => {
      const record = { ...added, seq: 2_400, hash: hash(records[2_398]?.hash ?? "", 2_400) };
      records[2_399] = record;
      return record;
    },
  };
  await appendTo(forger, { ...entry, subject: "forged, with a hash of its own" });
  expect(await verifyAudit(store)).toMatchObject({ brokenAt: 2_401 });
});

test.each([
  ["changed", "UPDATE audit SET after = '{}' WHERE seq = 22", 22],
  ["taken out", "DELETE FROM audit WHERE seq = 21", 21],
])("an entry that was %s behind the table's back is found", async (_, statement, brokenAt) => {
  await withAdmin(database.url, async (client) => {
    await client.query("ALTER TABLE audit DISABLE TRIGGER USER");
    await client.query(statement);
    await client.query("ALTER TABLE audit ENABLE TRIGGER USER");
  });
  expect(await verifyAudit(audit)).toMatchObject({ brokenAt });
});
