import { expect, onTestFinished, test } from "vitest";
import { reportAuditHead } from "../packages/server/src/alerts/watches.ts";
import type { NewEvent } from "../packages/server/src/telemetry/events.ts";
import { sale } from "./support/commands.ts";
import { createDatabase, withAdmin } from "./support/database.ts";
import { startTestService } from "./support/service.ts";

test("the last entry is sent to the log and the alert channels by one instance in an hour", async () => {
  const events: NewEvent[] = [];
  const once: (readonly [string, number])[] = [];
  const logged: object[] = [];
  const audit = { head: async () => ({ seq: 7, hash: "ab" }) };
  const log = { info: (fields: object) => void logged.push(fields) };
  const alerts = {
    record: async (event: NewEvent) => void events.push(event),
    recordOnce: async ({ kind }: NewEvent, withinMs: number) => void once.push([kind, withinMs]),
  };
  await reportAuditHead(audit, alerts, log);
  expect(once).toEqual([["audit_head", 3_500_000]]);
  await reportAuditHead(audit, alerts, log, true);
  expect(events).toMatchObject([{ kind: "audit_head", detail: { expect: "7:ab" } }]);
  expect(logged).toEqual([{ expect: "7:ab" }, { expect: "7:ab" }]);
});

test("a stop sends the last entry, and stores the figures of the last deliveries", async () => {
  const database = await createDatabase();
  onTestFinished(() => database.drop());
  const service = await startTestService({ database });
  const { body } = await service.operator("POST", "/operator/v1/operators", { name: "Ada", role: "viewer" });
  expect(body["id"]).toBeDefined();
  const partner = await service.register();
  await partner.notify(sale(), "accepted");
  await service.stop();
  await withAdmin(database.url, async (client) => {
    const { rows: audit } = await client.query("SELECT seq, hash FROM audit ORDER BY seq DESC LIMIT 1");
    const { rows: events } = await client.query("SELECT detail FROM events WHERE kind = 'audit_head'");
    const own = "SELECT accepted FROM delivery_figures WHERE partner_id = $1 AND grain = 'hour'";
    const { rows: figures } = await client.query(own, [partner.id]);
    expect(figures).toMatchObject([{ accepted: 1 }]);
    expect(events).toEqual([{ detail: { expect: `${audit[0].seq}:${audit[0].hash}` } }]);
  });
});
