import { hash, randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { expect, onTestFinished, test } from "vitest";
import { readConfig } from "../packages/server/src/config/config.ts";
import type { AuditHead } from "../packages/server/src/operators/audit.ts";
import { newOperatorToken } from "../packages/server/src/operators/operators.ts";
import { verifyAuditOf } from "../packages/server/src/programs/audit.ts";
import { rotateMasterKeyOf } from "../packages/server/src/programs/master-key.ts";
import { createDatabase, type TestDatabase, withAdmin } from "./support/database.ts";
import { startTestService, type WholeService } from "./support/service.ts";

const masterKey = randomBytes(32);

async function start(database?: TestDatabase): Promise<WholeService> {
  const service = await startTestService({ masterKey, ...(database !== undefined && { database }) });
  onTestFinished(() => service.stop());
  return service;
}

function verify({ database }: Pick<WholeService, "database">, expected?: AuditHead) {
  const env = { DATABASE_URL: database.url, PAYBELL_MASTER_KEY: masterKey.toString("base64") };
  return verifyAuditOf(readConfig(env), AbortSignal.timeout(120_000), expected);
}

const query = ({ database }: Pick<WholeService, "database">, text: string, values: unknown[] = []) =>
  withAdmin(database.url, async (client) => (await client.query(text, values)).rows);

async function added(service: WholeService, role = "admin", name = "Ada") {
  const { status, body } = await service.operator("POST", "/operator/v1/operators", { name, role });
  return { ...(body as { readonly id: string; readonly token: string }), status };
}

const statusOf = async (service: WholeService, token: string) =>
  (await service.operator("GET", "/operator/v1/partners", undefined, token)).status;

async function expectRefused(service: WholeService, token: string, id: string): Promise<void> {
  expect(await statusOf(service, token)).toBe(401);
  const alerts = async () => (await service.operator("GET", "/operator/v1/events?state=row_changed")).body["items"];
  await expect.poll(alerts).toMatchObject([{ subjectId: id, detail: { table: "operators" } }]);
  expect(await verify(service)).toMatchObject({ changedRows: [{ table: "operators", id }] });
}

test.each([
  ["the MAC of another", "audit_seq, mac"],
  ["no MAC", "NULL, NULL"],
])("an operator that somebody wrote to the database with %s is refused, alerted and named", async (_, seal) => {
  const service = await start();
  const { id } = await added(service);
  const [token, forged] = [newOperatorToken(), "01a201e6-1bf7-73ed-8aa6-cf91ed000000"];
  await query(
    service,
    `INSERT INTO operators (id, name, role, token_hash, expires_at, audit_seq, mac)
     SELECT $1, 'Eve', role, $2, expires_at, ${seal} FROM operators WHERE id = $3`,
    [forged, hash("sha256", token, "buffer"), id],
  );
  await expectRefused(service, token, forged);
});

test.each([
  ["a role that was raised", "UPDATE operators SET role = 'admin'"],
  ["an expiry that was moved", "UPDATE operators SET expires_at = expires_at + interval '1 year'"],
])("%s in the database is refused", async (_, statement) => {
  const service = await start();
  const { id, token } = await added(service, "viewer");
  await query(service, statement);
  await expectRefused(service, token, id);
});

test("a row that was valid before its operator was revoked is refused when it is copied back", async () => {
  const service = await start();
  const { id, token } = await added(service);
  await query(service, "CREATE TABLE kept AS SELECT * FROM operators");
  expect((await service.operator("POST", `/operator/v1/operators/${id}/revoke`)).status).toBe(200);
  expect(await verify(service)).toMatchObject({ macs: "verified", changedRows: [] });
  await query(service, "DELETE FROM operators; INSERT INTO operators SELECT * FROM kept");
  await expectRefused(service, token, id);
});

test("an API key that was rotated away is not revived in the database, and the new one is valid", async () => {
  const service = await start();
  const partner = await service.register();
  const rotated = await service.operator("POST", `/operator/v1/partners/${partner.id}/keys/rotate`, {
    key: "apiKey",
    overlapHours: 0,
  });
  await query(service, "UPDATE partner_keys SET expires_at = NULL");
  expect((await partner.call("GET", "/v1/self")).status).toBe(401);
  const key = String(rotated.body["secret"]);
  expect((await partner.call("GET", "/v1/self", { key })).status).toBe(200);
  expect(await verify(service)).toMatchObject({ changedRows: [{ table: "partner_keys" }] });
});

test.each(["mac", "NULL"])("an entry that somebody appended with a right hash has no right MAC: %s", async (mac) => {
  const service = await start();
  await added(service);
  const before = await verify(service);
  expect(before).not.toHaveProperty("brokenAt");
  await query(
    service,
    `INSERT INTO audit SELECT n.seq, at_ms, actor, role, token_id, address, action, subject, before, after,
       encode(sha256(convert_to(
         '["' || hash || '",' || n.seq || ',' || at_ms || ',' || (
           SELECT string_agg(to_json(v)::text, ',' ORDER BY o)
           FROM unnest(ARRAY[actor, role, token_id, address, action, subject, before, after])
             WITH ORDINALITY AS u (v, o)) || ']', 'UTF8')), 'hex'), ${mac}
     FROM audit, LATERAL (SELECT audit.seq + 1 AS seq) n ORDER BY audit.seq DESC LIMIT 1`,
  );
  expect(await verify(service)).toMatchObject({ brokenAt: before.from + before.entries });
  const env = { DATABASE_URL: service.database.url };
  const withoutKey = await verifyAuditOf(readConfig(env), AbortSignal.timeout(120_000));
  expect(withoutKey).toMatchObject({ macs: "not verified", entries: before.entries + 1 });
  expect(withoutKey).not.toHaveProperty("brokenAt");
});

test("a rotation of the master key changes no entry: the audit and its rows are verified after it", async () => {
  const service = await start();
  await added(service);
  await service.register();
  const entries = () => query(service, "SELECT seq, hash, encode(mac, 'hex') AS mac FROM audit ORDER BY seq");
  const before = await entries();
  expect(await verify(service)).toMatchObject({ macs: "verified", entries: before.length, changedRows: [] });

  const [newKey, oldKey] = [randomBytes(32), masterKey].map((key) => key.toString("base64"));
  const rotating = { PAYBELL_MASTER_KEY: newKey, PAYBELL_MASTER_KEY_OTHERS: oldKey };
  const done = await rotateMasterKeyOf(
    readConfig({ DATABASE_URL: service.database.url, ...rotating }),
    () => undefined,
    AbortSignal.timeout(120_000),
  );
  expect(done).toMatchObject({ notOpened: 0 });
  expect((await entries()).slice(0, before.length)).toEqual(before);
  const env = { DATABASE_URL: service.database.url, PAYBELL_MASTER_KEY: newKey };
  const verified = await verifyAuditOf(readConfig(env), AbortSignal.timeout(120_000));
  expect(verified).toMatchObject({ macs: "verified", entries: before.length + 1, changedRows: [] });
  expect(verified).not.toHaveProperty("brokenAt");
});

const ruleAt = "/operator/v1/two-admin-rule";

/** Two admins, and the rule for two. */
async function withRule(): Promise<{ service: WholeService; ada: string; grace: string }> {
  const service = await start();
  const [{ token: ada }, { token: grace }] = [await added(service), await added(service, "admin", "Grace")];
  expect((await service.operator("PUT", ruleAt, { minutes: 60 }, ada)).status).toBe(200);
  return { service, ada, grace };
}

const ofAda = "SELECT name, id::text AS token_id FROM operators WHERE name = 'Ada'";
test.each([
  [
    "wrote",
    `INSERT INTO proposals (id, action, input, proposed_by, token_id, expires_at)
     SELECT gen_random_uuid(), action, input, a.name, a.token_id, expires_at FROM proposals, (${ofAda}) AS a RETURNING id`,
  ],
  ["changed", `UPDATE proposals SET proposed_by = a.name, token_id = a.token_id FROM (${ofAda}) AS a RETURNING id`],
])("a proposal that somebody %s in the database is confirmed by nobody", async (_, statement) => {
  const { service, ada, grace } = await withRule();
  const { body: own } = await service.operator("POST", `${ruleAt}/propose`, { minutes: 0 }, grace);
  const confirm = (proposal: unknown, by: string) => service.operator("PUT", ruleAt, { minutes: 0, proposal }, by);
  expect((await confirm(own["id"], grace)).body).toMatchObject({ code: "second_admin_required" });
  const [{ id }] = await query(service, statement);
  expect((await confirm(id, grace)).status).toBe(404);
  const { body } = await service.operator("GET", "/operator/v1/proposals", undefined, ada);
  expect(body["items"]).toEqual(id === own["id"] ? [] : [own]);
  expect((await service.operator("GET", ruleAt)).body).toEqual({ minutes: 60 });
});

test("where two admins are no longer left, the guide's statement lets the token of the settings add two", async () => {
  const { service } = await withRule();
  await query(service, "UPDATE operators SET revoked_at = now()");
  expect((await added(service)).status).toBe(403);
  const guide = await readFile("docs/operator/production.md", "utf8");
  const [, statement = ""] = /If two admins are no longer left[^`]*`([^`]+)`/.exec(guide) ?? [];
  await query(service, statement);
  const [ada, grace] = [await added(service), await added(service, "admin", "Grace")];
  expect([ada.status, grace.status, (await added(service, "admin", "Hedy")).status]).toEqual([201, 201, 403]);
  const { body } = await service.operator("POST", `${ruleAt}/propose`, { minutes: 0 }, ada.token);
  const json = { minutes: 0, proposal: body["id"] };
  expect((await service.operator("PUT", ruleAt, json, grace.token)).status).toBe(200);
});

test("entries that were cut off are missed by their number and hash", async () => {
  const service = await start();
  await added(service);
  const { entries, from, hash: last } = await verify(service);
  const head = { seq: from + entries - 1, hash: last };
  expect(await verify(service, head)).not.toHaveProperty("unexpected");
  await query(
    service,
    "ALTER TABLE audit DISABLE TRIGGER USER; DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
  );
  expect(await verify(service, head)).toMatchObject({ unexpected: true });
});

test("a database of an older version is sealed once a day after its upgrade, when no older process lives", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const token = newOperatorToken();
  const insert = `
    INSERT INTO operators (id, name, role, token_hash, expires_at)
    VALUES (gen_random_uuid(), 'Grace', 'admin', $1, now() + interval '1 day')`;
  await query({ database }, insert, [hash("sha256", token, "buffer")]);
  const marks = () => query({ database }, "SELECT seq FROM sealing");
  const run = async () => {
    const service = await startTestService({ masterKey, database });
    const status = await statusOf(service, token);
    const operator = await added(service);
    await service.stop();
    const [row] = await query({ database }, "SELECT token_hash FROM operators WHERE id = $1", [operator.id]);
    const isPlain = row.token_hash.equals(hash("sha256", operator.token, "buffer"));
    return { status, isPlain };
  };
  await query({ database }, "UPDATE migrations SET applied_at = now() - interval '23 hours'");
  expect(await run()).toEqual({ status: 200, isPlain: true });
  expect(await marks()).toEqual([]);
  await query({ database }, "UPDATE migrations SET applied_at = now() - interval '25 hours'");
  const lease = "INSERT INTO leases (id, kind, host, version) VALUES (gen_random_uuid(), 'api', 'older', '0.0.9')";
  await query({ database }, lease);
  expect(await run()).toEqual({ status: 200, isPlain: true });
  expect(await marks()).toEqual([]);
  await query({ database }, "DELETE FROM leases WHERE host = 'older'");
  expect(await run()).toEqual({ status: 200, isPlain: false });
  const [mark] = await marks();
  expect(mark).toBeDefined();
  const [sealed] = await query({ database }, "SELECT token_hash, mac, audit_seq FROM operators WHERE name = 'Grace'");
  expect(sealed.token_hash).not.toEqual(hash("sha256", token, "buffer"));
  expect(sealed).toMatchObject({ audit_seq: mark.seq });
  const [entry] = await query({ database }, "SELECT actor, action FROM audit WHERE seq = $1", [mark.seq]);
  expect(entry).toEqual({ actor: "paybell", action: "sealDatabase" });
  expect(await query({ database }, "SELECT name FROM migrations WHERE breaking AND number = 70")).toHaveLength(1);
  expect(await verify({ database })).toMatchObject({ macs: "verified", changedRows: [] });
});
