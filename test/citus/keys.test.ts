import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestService, type WholeService } from "../support/service.ts";

let service: WholeService;
beforeAll(async () => {
  service = await startTestService();
}, 240_000);
afterAll(() => service.stop());

test("a change of one partner's keys keeps no change of another partner waiting", async () => {
  const [one, other] = await Promise.all([service.register(), service.register()]);
  const client = new Client({ connectionString: service.database.url });
  await client.connect();
  try {
    await client.query("BEGIN");
    await client.query("UPDATE partner_keys SET seals = seals + 1 WHERE partner_id = $1", [one.id]);
    // It is open until the answer is there.
    const { status, text } = await service.operator("POST", `/operator/v1/partners/${other.id}/pause`);
    expect(status, text).toBe(200);
    await client.query("COMMIT");
  } finally {
    await client.end();
  }
});

test("keys are rotated and partners registered side by side", async () => {
  const partners = await Promise.all(Array.from({ length: 4 }, () => service.register()));
  const rotated = partners.map(({ id }) =>
    service.operator("POST", `/operator/v1/partners/${id}/keys/rotate`, { key: "signingKey", overlapHours: 1 }),
  );
  const registered = Array.from({ length: 4 }, () => service.register());
  expect((await Promise.all(rotated)).map(({ status }) => status)).toEqual(partners.map(() => 200));
  expect(new Set((await Promise.all(registered)).map(({ id }) => id)).size).toBe(4);
});
