import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { queryHomes, withAdmin } from "./support/database.ts";
import { operatorToken, serviceOfFile } from "./support/service.ts";

const service = await serviceOfFile();

test("the audit has each look at the content of IPNs: one's content, its proof, and a day", async () => {
  const partner = await service.register();
  const { id } = await partner.notify(sale(), "accepted");
  const looks = [
    [`/operator/v1/notifications/${id}/content`, "readNotification", id],
    [`/operator/v1/notifications/${id}/proof`, "proveDelivery", id],
    ["/operator/v1/history/2026-01-31", "exportHistory", "2026-01-31"],
  ] as const;
  for (const [path, action, subject] of looks) {
    const answer = await fetch(`${service.baseUrl}${path}`, { headers: { authorization: `Bearer ${operatorToken}` } });
    await answer.arrayBuffer();
    expect(answer.status, path).toBe(200);
    const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=1");
    expect(audit["items"], path).toMatchObject([{ action, subject, actor: "bootstrap", address: "127.0.0.1" }]);
  }
});

test("a refused report is shown by its event's id to operators only, and the audit has each look", async () => {
  const partner = await service.register();
  const refused = { ...reportedSale(partner.id, { amount: "-1", merchantTransId: "bought-shoes" }) };
  await service.operator("POST", "/operator/v1/completions", { completions: [refused] });
  const tokens = await Promise.all(
    ["viewer", "operator"].map(async (role) => {
      const { body } = await service.operator("POST", "/operator/v1/operators", { name: `A ${role}`, role });
      return String(body["token"]);
    }),
  );
  const [viewer = "", operator = ""] = tokens;
  const get = (path: string, token: string) => service.operator("GET", `/operator/v1/${path}`, undefined, token);
  for (const token of tokens) {
    const { status, text } = await get("events?state=report_refused", token);
    expect(status).toBe(200);
    expect(text).toContain("invalid_amount");
    expect(text).not.toContain("bought-shoes");
  }
  const reported = reportedSale(partner.id);
  await service.report([reported]);
  const other = { ...reported, merchantTransId: "bought-shoes" };
  await service.operator("POST", "/operator/v1/completions", { completions: [other] });
  const { body: found } = await get(`notifications?partner=${partner.id}`, viewer);
  const [{ id: notificationId } = { id: "" }] = found["items"] as { id: string }[];
  const { text: shown } = await get(`notifications/${notificationId}`, viewer);
  expect(shown).toContain("report_conflict");
  expect(shown).not.toContain("bought-shoes");
  const { body: page } = await get("events?state=report_refused", viewer);
  const [{ id } = { id: "" }] = page["items"] as { id: string }[];
  expect((await get(`events/${id}`, viewer)).text).not.toContain("bought-shoes");
  expect((await get(`events/${id}`, operator)).body).toMatchObject({ detail: { item: refused } });
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?action=inspectEvent&limit=1");
  expect(audit["items"]).toMatchObject([{ actor: "A operator", role: "operator", subject: id }]);
});

const profilePath = join(import.meta.dirname, "../docs/operator/acquirer-profile.json");

/** Holds the lock of the audit in a session of its own. @returns what releases it */
async function lockedAudit(url: string): Promise<() => Promise<void>> {
  const client = new Client({ connectionString: url });
  await client.connect();
  await client.query("SELECT pg_advisory_lock(4820041)");
  return () => client.end();
}

test("no action happens without its entry: with the audit locked, each is refused and changes nothing", async () => {
  const partner = await service.register();
  const { id } = await partner.notify(sale(), "accepted");
  const operator = await service.operator("POST", "/operator/v1/operators", { name: "Ada", role: "viewer" });
  const own = `/operator/v1/partners/${partner.id}`;
  const acquirer = { profile: JSON.parse(readFileSync(profilePath, "utf8")), hosts: ["127.0.0.1:1"], tls: "off" };
  await service.operator("PUT", "/operator/v1/acquirers/first", acquirer);
  await service.operator("PUT", `${own}/terminals/T8`, { mid: "M8" });
  const rows = async () => [
    await queryHomes(
      service.database,
      "SELECT (SELECT count(*) FROM terminals) AS terminals, (SELECT count(*) FROM notifications) AS notifications",
    ),
    await withAdmin(service.database.url, async (client) => {
      const { rows: found } = await client.query(
        `SELECT (SELECT json_agg(t ORDER BY id) FROM (SELECT id, state, updated_at FROM partners) t) AS partners,
           (SELECT json_agg(t ORDER BY id) FROM (SELECT id, material, expires_at FROM partner_keys) t) AS keys,
           (SELECT json_agg(t ORDER BY id) FROM (SELECT id, revoked_at FROM operators) t) AS operators,
           (SELECT count(*) FROM acquirers) AS acquirers, (SELECT count(*) FROM audit) AS audit`,
      );
      return found;
    }),
  ];
  const before = await rows();
  const release = await lockedAudit(service.database.url);
  const actions: readonly (readonly [string, string, unknown?])[] = [
    ["POST", `${own}/keys/rotate`, { key: "signingKey", overlapHours: 0 }],
    ["POST", `${own}/api-keys`, { name: "another", scopes: ["read"] }],
    ["PATCH", own, { name: "Another name" }],
    ["POST", `${own}/pause`],
    ["PUT", `${own}/terminals/T9`, { mid: "M9" }],
    ["DELETE", `${own}/terminals/T8`],
    ["PUT", "/operator/v1/acquirers/second", acquirer],
    ["DELETE", "/operator/v1/acquirers/first"],
    ["POST", "/operator/v1/operators", { name: "Grace", role: "admin" }],
    ["POST", `/operator/v1/operators/${operator.body["id"]}/revoke`],
    ["POST", `/operator/v1/notifications/${id}/redeliver`, {}],
    ["POST", `${own}/test-notification`],
    ["GET", `/operator/v1/notifications/${id}/content`],
  ];
  const answers = await Promise.all(actions.map(([method, path, json]) => service.operator(method, path, json)));
  const apiKey = await partner.call("POST", "/v1/api-keys", { json: { name: "another", scopes: ["read"] } });
  for (const [nth, { status, body: problem, headers }] of [...answers, apiKey].entries()) {
    expect({ status, code: problem["code"] }, String(actions[nth])).toEqual({ status: 503, code: "unavailable" });
    expect(headers.get("retry-after")).not.toBeNull();
  }
  expect(await rows()).toEqual(before);
  await release();
  // It is recorded beside the answer, which does not wait for it.
  const alerts = async () => (await service.operator("GET", "/operator/v1/events?state=audit_failed")).body["items"];
  await expect.poll(alerts).not.toEqual([]);
  const rotated = await service.operator("POST", `${own}/keys/rotate`, { key: "signingKey", overlapHours: 0 });
  expect(rotated.status).toBe(200);
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=1");
  const [entry] = audit["items"] as { before: { keys: unknown[] }; after: { keys: unknown[] } }[];
  expect(entry).toMatchObject({ action: "rotateKey", subject: partner.id });
  expect(entry?.after.keys).toHaveLength((entry?.before.keys.length ?? 0) + 1);
});

test("an action outside of the database has an entry of its intent before, and one of its outcome after", async () => {
  const partner = await service.register();
  const { id } = await partner.notify(sale(), "accepted");
  const unknown = "01a201e6-1bf7-73ed-8aa6-cf91ed000000";
  for (const subject of [id, unknown])
    await service.operator("POST", `/operator/v1/notifications/${subject}/redeliver`, {});
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=4");
  expect(audit["items"]).toMatchObject([
    { action: "redeliverAnyNotification", subject: unknown, after: { status: 404 } },
    { action: "begin redeliverAnyNotification", subject: unknown },
    { action: "redeliverAnyNotification", subject: id, after: {} },
    { action: "begin redeliverAnyNotification", subject: id },
  ]);
});

test("a new object is the subject of its entry", async () => {
  const partner = await service.register();
  const { body: operator } = await service.operator("POST", "/operator/v1/operators", { name: "Ada", role: "viewer" });
  const { body: key } = await partner.call("POST", "/v1/api-keys", { json: { name: "another", scopes: ["read"] } });
  const { body: audit } = await service.operator("GET", "/operator/v1/audit?limit=3");
  expect(audit["items"]).toMatchObject([
    { action: "addOwnApiKey", subject: key["id"], actor: `partner ${partner.id}` },
    { action: "addOperator", subject: operator["id"] },
    { action: "registerPartner", subject: partner.id },
  ]);
});
