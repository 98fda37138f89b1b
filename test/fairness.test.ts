import { createSecretKey, randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, inject, test } from "vitest";
import { ContentMac } from "../packages/server/src/delivery/attempt/content-mac.ts";
import { MasterKey } from "../packages/server/src/partners/master-key.ts";
import { reportedSale, sale } from "./support/commands.ts";
import { inHomes, queryHomes, withAdmin } from "./support/database.ts";
import { eventually, serviceOfFile, startTestService, type TestPartner, type WholeService } from "./support/service.ts";

const backlog = 20_000;
const timeoutMs = "1000";
/** A third of PAYBELL_DATABASE_CONNECTIONS is for people. One of these connections is left to their actions. */
const searchesAtOnce = 4;

const masterKey = randomBytes(32);
const service = await serviceOfFile({
  masterKey,
  env: { PAYBELL_ATTEMPT_TIMEOUT_MS: timeoutMs, PAYBELL_CONNECT_TIMEOUT_MS: timeoutMs },
});

const sql = (text: string, values: readonly unknown[] = []) => queryHomes(service.database, text, values);

/** With the service's key: a copy without a right MAC would be parked. */
async function contentMac(): Promise<ContentMac> {
  const name = "notification contents";
  const sealed = await withAdmin(service.database.url, async (client) => {
    const { rows } = await client.query<{ sealed: Buffer }>("SELECT sealed FROM sealed_values WHERE name = $1", [name]);
    return rows[0]?.sealed ?? Buffer.alloc(0);
  });
  return new ContentMac(createSecretKey(new MasterKey(masterKey).openNamed(sealed, name)), () => undefined);
}

/** Copies of one notification, all due: as many as an outage of hours leaves. */
async function pile(partner: TestPartner, notificationId: string, count: number): Promise<void> {
  const copies = `
    (SELECT (left($2, 24) || lpad(to_hex(i), 12, '0'))::uuid AS id FROM generate_series(1, $3) AS i) AS c`;
  const ids = Array.from(
    { length: count },
    (_, at) => `${notificationId.slice(0, 24)}${(at + 1).toString(16).padStart(12, "0")}`,
  );
  const macOf = await contentMac();
  await inHomes(service.database, async (client) => {
    const { rows } = await client.query<{ command: string; content: string }>(
      "SELECT command, content::text FROM notifications WHERE partner_id = $1 AND id = $2",
      [partner.id, notificationId],
    );
    for (const { command, content } of rows) {
      const fixed = { partnerId: partner.id, command, callBackUrl: null, content };
      const macs = ids.map((id) => macOf.of({ ...fixed, id } as Parameters<typeof macOf.of>[0]));
      await client.query(
        `INSERT INTO notifications (partner_id, id, chain_id, command, content, content_mac)
         SELECT $1::uuid, c.id, c.id, $4::text, $5::json, m.mac
         FROM ${copies} JOIN unnest($6::uuid[], $7::bytea[]) AS m (id, mac) ON m.id = c.id`,
        [partner.id, notificationId, count, command, content, ids, macs],
      );
      await client.query(
        `INSERT INTO pending (partner_id, id, chain_id, due_at, bytes)
         SELECT $1::uuid, c.id, c.id, now(), 400 FROM ${copies}`,
        [partner.id, notificationId, count],
      );
    }
  });
}

async function standing(partner: TestPartner): Promise<{ pending: number; untouched: number }> {
  const rows = await sql("SELECT attempts_made FROM pending WHERE partner_id = $1", [partner.id]);
  return { pending: rows.length, untouched: rows.filter((row) => row["attempts_made"] === 0).length };
}

/** Changes it as a person would, so that the owner of its shard reads it again. */
async function probeNow(partner: TestPartner): Promise<void> {
  await sql(
    `UPDATE endpoints SET probe_at = now(), control_no = control_no + 1, updated_at = now()
     WHERE partner_id = $1 AND state = 'open'`,
    [partner.id],
  );
  await sql("SELECT pg_notify('paybell_endpoint', '')");
}

describe("a partner whose endpoint hangs", () => {
  test("delays no other partner, although 20,000 notifications wait for it", async () => {
    const dead = await service.register({ retry: Array(20).fill(1) });
    const { id } = await dead.notify(sale(), "accepted");
    await service.operator("PATCH", `/operator/v1/partners/${dead.id}`, { retry: [3_600] });
    const taken = dead.server.deliveries.length;
    dead.server.answersAlways("hang");
    await pile(dead, id, backlog);

    const living = await service.register();
    await Promise.all(Array.from({ length: 100 }, () => living.run(sale())));
    // Notifications that a slow machine sends twice count once.
    await living.server.until((all) => new Set(all.map(({ received }) => received?.ipn.id)).size >= 100);

    await eventually("its endpoint to be open", async () => {
      const { body: page } = await dead.call("GET", "/v1/endpoints?state=open");
      return (page["items"] as unknown[]).length === 1 ? true : undefined;
    });
    const posts = dead.server.deliveries.length - taken;
    expect(posts).toBeLessThanOrEqual(2 * 32);
    const test = await living.call("POST", "/v1/test-notification");
    await living.settled(String(test.body["id"]), "accepted");
    const found = await standing(dead);
    expect(found.pending).toBe(backlog);
    expect(found.untouched).toBeGreaterThanOrEqual(backlog - 2 * 32);

    // After its recovery it gets everything; most of the backlog is removed to keep the test short.
    await sql(
      `DELETE FROM pending p WHERE p.partner_id = $1
         AND p.id > (SELECT q.id FROM pending q WHERE q.partner_id = $1 ORDER BY q.id OFFSET 1000 LIMIT 1)`,
      [dead.id],
    );
    dead.server.answersAlways(204);
    let probedMs = 0;
    await eventually("the backlog to be drained", async () => {
      // Repeatedly, because a hanging delivery puts itself and the next probe off when its time is over.
      if (performance.now() - probedMs > 1_000) {
        probedMs = performance.now();
        await probeNow(dead);
      }
      await sql("UPDATE pending SET due_at = now() WHERE partner_id = $1 AND due_at > now()", [dead.id]);
      return (await standing(dead)).pending === 0 ? true : undefined;
    });
  });
});

describe("partners that hang all in one instant", () => {
  let few: WholeService;
  beforeAll(async () => {
    // As many for each partner as it has with the defaults; their attempts outlast the test.
    few = await startTestService({
      env: { PAYBELL_SLOTS_MAX: "128", PAYBELL_DRAIN_TIMEOUT_MS: "1", PAYBELL_ATTEMPT_TIMEOUT_MS: "600000" },
    });
  });
  afterAll(() => few.stop());

  test("let another partner's notifications arrive, although they answered until then", async () => {
    const hanging = await Promise.all(Array.from({ length: 16 }, () => few.register({ maxInFlight: 8 })));
    const living = await few.register({ maxInFlight: 8 });
    const reports: Promise<unknown>[] = [];
    const reportLoad = (each: number) => {
      for (const { id } of hanging) reports.push(few.report(Array.from({ length: each }, () => reportedSale(id))));
    };
    for (let turn = 1; turn <= 10; turn += 1) {
      reportLoad(4);
      await Promise.all(hanging.map(({ server }) => server.next(4 * turn)));
    }
    for (const { server } of hanging) server.answersAlways("hang");
    reportLoad(16);
    const underWay = () =>
      hanging.flatMap(({ server }) => server.deliveries.filter(({ answer }) => answer === "hang")).length;
    await expect.poll(underWay).toBeGreaterThan(64);

    for (let turn = 0; turn < 40; turn += 1) {
      if (turn % 4 === 0) reportLoad(4);
      await few.report([reportedSale(living.id)]);
    }
    await Promise.all(reports);
    // No slot that hangs becomes free meanwhile.
    await living.server.next(40);
    // A partner gets one more while it holds fewer than are free, so that some are always left.
    expect(underWay()).toBeLessThanOrEqual(128 - 4);
  });
});

describe("operators' searches that hold every connection they may have", () => {
  // On Citus each home has connections for people of its own, at its node.
  test.skipIf(inject("databaseNodeUrls").length > 0)(
    "keep no report waiting, and no notification, of a partner not asked about before",
    async () => {
      const partner = await service.register();
      const blocked = `SELECT FROM pg_stat_activity
      WHERE datname = current_database() AND wait_event_type = 'Lock' AND application_name = 'paybell'`;
      await withAdmin(service.database.url, async (client) => {
        await client.query("BEGIN; LOCK TABLE parked IN ACCESS EXCLUSIVE MODE");
        const searches = Array.from({ length: searchesAtOnce }, () =>
          service.operator("GET", "/operator/v1/notifications?state=parked"),
        );
        // Gauges are read now and then, and wait as well.
        await eventually("the searches to hold their connections", async () =>
          (await sql(blocked)).length >= searchesAtOnce ? true : undefined,
        );
        await service.report([reportedSale(partner.id)]);
        await partner.server.next(1);
        expect((await sql(blocked)).length).toBeGreaterThanOrEqual(searchesAtOnce);
        await client.query("COMMIT");
        expect((await Promise.all(searches)).map(({ status }) => status)).toEqual(searches.map(() => 200));
      });
    },
  );
});

describe("maxPerSecond", () => {
  test("is kept: in any second at most the rate and one second's worth", async () => {
    const perSecond = 10;
    const partner = await service.register({ maxPerSecond: perSecond });
    await service.report(Array.from({ length: 40 }, () => reportedSale(partner.id)));
    const started = "SELECT started_at AS at FROM attempts WHERE partner_id = $1 ORDER BY started_at";
    const attempts = await eventually("all attempts", async () => {
      const rows = await sql(started, [partner.id]);
      return rows.length >= 40 ? rows : undefined;
    });
    const atMs = attempts.map((row) => Number(row["at"]));
    expect((atMs[39] ?? 0) - (atMs[0] ?? 0)).toBeGreaterThanOrEqual(((40 - perSecond) / perSecond) * 1_000 - 500);
  });
});
