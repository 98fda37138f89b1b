import { randomBytes } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import { reportedSale, sale } from "./support/commands.ts";
import { createDatabase, queryHomes } from "./support/database.ts";
import { eventually, shareShards, startTestService, type TestPartner } from "./support/service.ts";

interface Endpoint {
  readonly id: string;
  readonly kind: string;
  readonly target: string;
  readonly state: string;
  readonly failures: number;
  readonly lastReason: string | null;
  readonly probes: number;
  readonly probeAt: string | null;
}

const failuresToOpen = 5;

const database = await createDatabase();
const how = { database, masterKey: randomBytes(32), env: { PAYBELL_ATTEMPT_TIMEOUT_MS: "600000" } };
const service = await startTestService(how);
const other = await startTestService(how);
await shareShards(database.url);
afterAll(async () => {
  await Promise.all([service.stop(), other.stop()]);
  await database.drop();
});

const sql = (text: string, values: readonly unknown[] = []) => queryHomes(database, text, values);

async function endpoints(partner: TestPartner): Promise<readonly Endpoint[]> {
  const { body } = await partner.call("GET", "/v1/endpoints");
  return body["items"] as readonly Endpoint[];
}

function endpointThatIs(partner: TestPartner, state: string): Promise<Endpoint> {
  return eventually(`an endpoint that is ${state}`, async () =>
    (await endpoints(partner)).find((endpoint) => endpoint.state === state),
  );
}

/** Fails as often as needed. It is probed only when the test says so. */
async function open(partner: TestPartner, where = database): Promise<Endpoint> {
  // All fail in one moment: on a slow machine the first would fail again before the last one did.
  const { promise: when, resolve: answer } = Promise.withResolvers<void>();
  partner.server.answersAlways({ when, status: 503 });
  const posts = partner.server.deliveries.length + failuresToOpen;
  await Promise.all(Array.from({ length: failuresToOpen }, () => partner.run(sale())));
  await partner.server.next(posts);
  answer();
  const found = await endpointThatIs(partner, "open");
  await probeIn(partner, 3_600, where);
  return found;
}

/** Changes it as a person would, so that the owner of its shard reads it again. */
async function probeIn(partner: TestPartner, seconds: number, where = database): Promise<void> {
  await queryHomes(
    where,
    `UPDATE endpoints SET probe_at = now() + $2 * interval '1 second', control_no = control_no + 1, updated_at = now()
     WHERE partner_id = $1 AND state = 'open'`,
    [partner.id, seconds],
  );
  await queryHomes(where, "SELECT pg_notify('paybell_endpoint', '')");
}

function probeNow(partner: TestPartner): Promise<void> {
  return probeIn(partner, 0);
}

async function eventKinds(partner: TestPartner): Promise<readonly unknown[]> {
  const rows = await sql("SELECT kind FROM events WHERE partner_id = $1 ORDER BY id", [partner.id]);
  return rows.map(({ kind }) => kind);
}

async function pendingOf(partner: TestPartner): Promise<readonly Record<string, unknown>[]> {
  return sql("SELECT attempts_made, queue FROM pending WHERE partner_id = $1 ORDER BY id", [partner.id]);
}

/** Both instances have looked for due deliveries since then. */
async function bothClaimed(): Promise<void> {
  for (const instance of [service, other]) {
    const healthy = await instance.register();
    await healthy.call("POST", "/v1/test-notification");
    await healthy.call("POST", "/v1/test-notification");
    await healthy.server.next(2);
  }
}

describe.concurrent("an endpoint that fails", () => {
  test("opens with the fifth failure; later notifications wait unattempted, and are sent once it answers", async () => {
    const partner = await service.register({ retry: [1, 1, 1, 1, 1, 1, 3_600] });
    const found = await open(partner);
    expect(found).toMatchObject({
      kind: "origin",
      target: new URL(partner.server.url).origin,
      failures: failuresToOpen,
    });
    expect(found.lastReason).toBe("status");
    const posts = partner.server.deliveries.length;
    await service.report(Array.from({ length: 20 }, () => reportedSale(partner.id)));
    await bothClaimed();
    expect(partner.server.deliveries).toHaveLength(posts);
    const waiting = (await pendingOf(partner)).filter((row) => row["attempts_made"] === 0);
    expect(waiting).toHaveLength(20);

    partner.server.answersAlways(204);
    await probeNow(partner);
    await partner.server.until((all) => new Set(all.map(({ received }) => received?.ipn.id)).size === 25);
    await eventually("nothing to be pending", async () => ((await pendingOf(partner)).length === 0 ? true : undefined));
    expect(await endpoints(partner)).toMatchObject([{ state: "closed", failures: 0, probeAt: null }]);
    expect(await eventKinds(partner)).toEqual(["breaker_open", "breaker_closed"]);
  });

  test("is probed by one delivery at a time, whatever the number of instances, and less and less often", async () => {
    const partner = await service.register({ retry: [3_600] });
    await open(partner);
    await other.report(Array.from({ length: 50 }, () => reportedSale(partner.id)));
    const posts = partner.server.deliveries.length;
    for (const [probe, stepMs] of [
      [1, 10_000],
      [2, 20_000],
      [3, 40_000],
    ] as const) {
      const { promise: when, resolve: answer } = Promise.withResolvers<void>();
      partner.server.answers({ when, status: 500 });
      await probeNow(partner);
      await partner.server.next(posts + probe);
      await bothClaimed();
      expect(partner.server.deliveries).toHaveLength(posts + probe);
      const beforeMs = Date.now();
      answer();
      const probed = await eventually("the probe to be counted", async () =>
        (await endpoints(partner)).find(({ failures }) => failures >= failuresToOpen + probe),
      );
      expect(probed).toMatchObject({ state: "open", probes: probe });
      const probeAtMs = Date.parse(probed.probeAt ?? "");
      expect(probeAtMs - beforeMs).toBeGreaterThanOrEqual(stepMs * 0.85 - 1);
      expect(probeAtMs - Date.now()).toBeLessThanOrEqual(stepMs * 1.15);
      await probeIn(partner, 3_600);
    }
    expect(await eventKinds(partner)).toEqual(["breaker_open"]);
  });

  test("is closed by the partner or the operator, and waiting notifications are sent immediately", async () => {
    const partner = await service.register({ retry: [3_600] });
    const stranger = await service.register();
    for (const [close, posts] of [
      [(id: string) => partner.call("POST", `/v1/endpoints/${id}/close`), 6],
      [(id: string) => service.operator("POST", `/operator/v1/endpoints/${id}/close`), 12],
    ] as const) {
      const { id } = await open(partner);
      expect((await stranger.call("POST", `/v1/endpoints/${id}/close`)).status).toBe(404);
      await partner.run(sale());
      partner.server.answersAlways(204);
      expect(await close(id)).toMatchObject({ status: 200, body: { state: "closed", failures: 0 } });
      await partner.server.next(posts);
    }
    expect(await eventKinds(partner)).toEqual(["breaker_open", "breaker_closed", "breaker_open", "breaker_closed"]);
  });

  test("parks waiting notifications when their schedule is over", async () => {
    const partner = await service.register({ retry: [3_600] });
    await open(partner);
    const { id } = await partner.notify(sale());
    await probeIn(partner, 3_600);
    await sql("UPDATE pending SET schedule_start = now() - interval '61 minutes' WHERE id = $1", [id]);
    expect(await partner.settled(id, "parked")).toMatchObject({ attemptsMade: 0, lastReason: "status" });
    expect(await eventKinds(partner)).toEqual(["breaker_open", "parked"]);
    await eventually("the figures to count it", async () => {
      const { body } = await service.operator("GET", `/operator/v1/partners/${partner.id}/figures`);
      return body["parked"] === 1 || undefined;
    });
  });
});

describe.concurrent("a URL that answers 410", () => {
  test("gets nothing more until it is closed, if it is registered; others of its origin continue", async () => {
    const partner = await service.register({ retry: [1, 3_600] });
    const callBackUrl = partner.server.url.replace("/ipn", "/own");
    partner.server.answers(410);
    await partner.run(sale());
    const found = await endpointThatIs(partner, "gone");
    expect(found).toMatchObject({ kind: "url", target: partner.server.url, lastReason: "gone" });

    // A command that brings the same URL waits with the others.
    await partner.run(sale({ callBackUrl: partner.server.url }));
    await service.report(Array.from({ length: 2 }, () => reportedSale(partner.id)));
    await partner.run(sale({ callBackUrl }));
    await partner.server.next(2);
    await bothClaimed();
    expect((await pendingOf(partner)).map(({ queue }) => queue)).toEqual(["", "", "", ""]);
    expect(partner.server.deliveries.map(({ path }) => path)).toEqual(["/ipn", "/own"]);

    const closed = await partner.call("POST", `/v1/endpoints/${found.id}/close`);
    expect(closed.body).toMatchObject({ state: "closed" });
    const all = await partner.server.next(6);
    expect(all.slice(2).map(({ path }) => path)).toEqual(["/ipn", "/ipn", "/ipn", "/ipn"]);
    expect(await eventKinds(partner)).toEqual(["endpoint_gone", "breaker_closed"]);
  });

  test("parks that notification alone if a command brought it, and shuts no endpoint", async () => {
    const partner = await service.register();
    const callBackUrl = partner.server.url.replace("/ipn", "/left");
    partner.server.answers(410);
    const { id } = await partner.notify(sale({ callBackUrl }));
    expect(await partner.settled(id, "parked")).toMatchObject({ lastReason: "gone", attemptsMade: 1 });
    await partner.run(sale({ callBackUrl }));
    await partner.server.next(2);
    expect(partner.server.deliveries.map(({ path }) => path)).toEqual(["/left", "/left"]);
    expect(await endpoints(partner)).toEqual([]);
    expect(await eventKinds(partner)).toEqual(["parked"]);
  });

  test("that was the registered one is replaced by registering another", async () => {
    const partner = await service.register({ retry: [1, 3_600] });
    partner.server.answers(410);
    await partner.run(sale());
    await endpointThatIs(partner, "gone");
    await service.report([reportedSale(partner.id)]);
    await bothClaimed();
    expect(partner.server.deliveries).toHaveLength(1);
    const callBackUrl = partner.server.url.replace("/ipn", "/new");
    expect((await service.operator("PATCH", `/operator/v1/partners/${partner.id}`, { callBackUrl })).status).toBe(200);
    const all = await partner.server.next(3);
    expect(all.slice(1).map(({ path }) => path)).toEqual(["/new", "/new"]);
  });
});
