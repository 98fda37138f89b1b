import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { sale } from "../support/commands.ts";
import { queryHomes } from "../support/database.ts";
import { operatorToken, serviceOfFile, type TestPartner } from "../support/service.ts";
import { CommandLine } from "./command-line.ts";

const service = await serviceOfFile();
const line = new CommandLine({ PAYBELL_URL: service.baseUrl, PAYBELL_OPERATOR_TOKEN: operatorToken });
afterAll(() => line.remove());

async function stop(partner: TestPartner, how: "disable" | "pause"): Promise<void> {
  expect((await line.run(["partner", how, partner.id])).code).toBe(0);
  await aMinutePasses(partner);
}

/** As if it had been disabled, or paused, a minute ago. */
async function aMinutePasses({ id }: TestPartner): Promise<void> {
  const aMinuteAgo = "now() - interval '1 minute'";
  const text = `UPDATE partners SET stopped_at = ${aMinuteAgo}, updated_at = ${aMinuteAgo} WHERE id = $1`;
  await queryHomes(service.database, text, [id]);
}

const accepted = async (partner: TestPartner, change: Record<string, unknown> = {}) =>
  (await partner.notify(sale(change), "accepted")).id;

const settlement = () => ({ ...sale(), command: "SETTLEMENT" });

async function settle(partner: TestPartner): Promise<void> {
  const { tid, mid, reqId, merchantTransId } = settlement() as unknown as Record<string, string>;
  const { body, text, status } = await partner.run({ command: "SETTLEMENT", tid, mid, reqId, merchantTransId });
  expect(status, text).toBe(200);
  await partner.settled((body["notification"] as { id: string }).id, "accepted");
}

test("a partner stays while it is active, was just disabled, has an open batch or something pending", async () => {
  const partner = await service.register({ retry: [3_600] });
  await accepted(partner);
  partner.server.answersAlways({ status: 503 });
  await partner.run(sale());
  const archive = () => line.run(["partner", "archive", partner.id, "--out", "stays.jsonl", "--yes"]);
  const active = await archive();
  expect(active.code).not.toBe(0);
  expect(active.stderr).toContain("it is not disabled");
  // It could run commands while it was paused, and another instance may not know yet that it is disabled.
  await stop(partner, "pause");
  expect((await line.run(["partner", "disable", partner.id])).code).toBe(0);
  expect((await archive()).stderr).toContain("changed less than 10 seconds ago");
  await aMinutePasses(partner);
  const refused = await archive();
  expect(refused.stderr).toContain("1 notifications are pending");
  expect(refused.stderr).toContain("1 batches are open");
  expect(() => statSync(join(line.folder, "stays.jsonl"))).toThrow();
  expect((await service.operator("GET", `/operator/v1/partners/${partner.id}`)).status).toBe(200);
});

test("an archive has every row but keys and cards, and the partner is gone once it is written", async () => {
  const [partner, other] = [await service.register(), await service.register()];
  const notifications = [await accepted(partner), await accepted(partner)];
  await accepted(other, { tid: "T0000002" });
  await settle(partner);
  await stop(partner, "disable");
  const ran = await line.run(["partner", "archive", partner.id, "--out", "left.jsonl", "--yes"]);
  expect(ran.code, ran.stderr).toBe(0);
  const path = join(line.folder, "left.jsonl");
  expect((statSync(path).mode & 0o777).toString(8)).toBe("600");
  const text = readFileSync(path, "utf8");
  const records = text
    .trimEnd()
    .split("\n")
    .map((row) => JSON.parse(row) as { table: string; row: { id?: string } });
  const idsOf = (name: string) => records.filter(({ table }) => table === name).map(({ row }) => row.id);
  expect(idsOf("partners")).toEqual([partner.id]);
  expect(idsOf("notifications")).toEqual(expect.arrayContaining(notifications));
  expect(idsOf("transactions")).toHaveLength(3);
  expect(idsOf("attempts")).toHaveLength(3);
  expect(idsOf("batches")).toHaveLength(1);
  for (const secret of Object.values(partner.secrets)) expect(text).not.toContain(secret);
  expect(text).not.toContain("material");

  expect((await service.operator("GET", `/operator/v1/partners/${partner.id}`)).status).toBe(404);
  expect((await partner.call("GET", "/v1/self")).status).toBe(401);
  for (const table of ["transactions", "notifications", "attempts", "terminals", "partner_keys", "terminal_claims"]) {
    const left = await queryHomes(service.database, `SELECT FROM ${table} WHERE partner_id = $1`, [partner.id]);
    expect(left, table).toHaveLength(0);
  }
  expect((await other.call("GET", "/v1/self")).status).toBe(200);
  const { body } = await service.operator("GET", `/operator/v1/audit?subject=${partner.id}`);
  const actions = (body["items"] as { action: string }[]).map(({ action }) => action);
  expect(actions).toEqual(expect.arrayContaining(["exportPartner", "removePartner"]));
});

test("a partner is not deleted by the count of another state's archive", async () => {
  const partner = await service.register();
  await stop(partner, "disable");
  const path = `/operator/v1/partners/${partner.id}`;
  const wrong = await service.operator("DELETE", `${path}?records=7`);
  expect([wrong.status, wrong.body["code"]]).toEqual([409, "partner_in_use"]);
  expect((await service.operator("DELETE", `${path}?records=1`)).status).toBe(200);
  expect((await service.operator("DELETE", `${path}?records=1`)).status).toBe(404);
});
