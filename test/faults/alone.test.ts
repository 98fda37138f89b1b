import { expect, onTestFinished, test } from "vitest";
import { reportedSale } from "../support/commands.ts";
import { withAdmin } from "../support/database.ts";
import { eventually, startTestService, type WholeService } from "../support/service.ts";

async function serving(options: Parameters<typeof startTestService>[0] = {}): Promise<WholeService> {
  const service = await startTestService(options);
  onTestFinished(() => service.stop());
  return service;
}

/** Longer than a partner's snapshot is valid, and than two steps of its schedule. */
const quietMs = 7_000;

/** The first event of a kind, as soon as there is one. */
function eventOf(service: WholeService, kind: string) {
  return eventually(`the event ${kind}`, async () => {
    const { body } = await service.operator("GET", "/operator/v1/events");
    const items = body["items"] as readonly Readonly<Record<string, unknown>>[];
    return items.find((event) => event["kind"] === kind);
  });
}

test("a partner whose keys cannot be decrypted waits alone, is reported, and continues once they can", async () => {
  const service = await serving();
  const retry = [...Array<number>(20).fill(1), ...Array<number>(9).fill(3), 600];
  const [good, bad] = [await service.register({ retry }), await service.register({ retry })];
  const inDatabase = (sql: string) => withAdmin(service.database.url, (client) => client.query(sql, [bad.id]));
  // It trips no circuit: without the fault the next attempt comes within seconds.
  bad.server.answersAlways({ status: 404 });
  await service.report([reportedSale(bad.id)]);
  await bad.server.next(1);
  await inDatabase(`
    INSERT INTO partner_keys (partner_id, id, kind, material)
    SELECT partner_id, gen_random_uuid(), kind, '\\x00' FROM partner_keys
    WHERE partner_id = $1 AND kind = 'encryptionKey'`);
  const told = await eventOf(service, "partner_unreadable");
  expect(told).toMatchObject({ partnerId: bad.id });
  await eventually("its last snapshot to be too old", async () => {
    const last = bad.server.deliveries.at(-1);
    return last !== undefined && performance.now() - last.atMs > quietMs ? last : undefined;
  });
  const trouble = [{ partnerId: bad.id, httpStatus: 404, parkingAt: null }];
  expect(await service.operator("GET", "/operator/v1/overview")).toMatchObject({ status: 200, body: { trouble } });
  bad.server.answersAlways({ status: 204 });
  const before = bad.server.deliveries.length;
  const [paid] = await service.report([reportedSale(good.id)]);
  const [delivery] = await good.server.next(1);
  expect(delivery?.received?.ipn.id).toBe(paid);
  expect(bad.server.deliveries.length).toBe(before);
  await inDatabase("DELETE FROM partner_keys WHERE partner_id = $1 AND kind = 'encryptionKey' AND material = '\\x00'");
  await bad.server.until((all) => all.length > before);
});

test("a key that has sealed half of what it may is reported, and seals on", async () => {
  const service = await serving();
  const partner = await service.register();
  const used = "UPDATE partner_keys SET seals = 2147483648 WHERE partner_id = $1 AND kind = 'encryptionKey'";
  await withAdmin(service.database.url, (client) => client.query(used, [partner.id]));
  await service.report([reportedSale(partner.id)]);
  await partner.server.next(1);
  expect(await eventOf(service, "key_limit")).toMatchObject({ partnerId: partner.id, subjectId: expect.any(String) });
});

test("shards without an owner for 15 s are reported by a process that delivers nothing itself", async () => {
  const service = await serving({ role: "api" });
  const told = await eventOf(service, "shards_unowned");
  const { shards, seconds } = told["detail"] as { shards: number; seconds: number };
  expect(shards).toBe(256);
  expect(seconds).toBeGreaterThanOrEqual(15);
});
