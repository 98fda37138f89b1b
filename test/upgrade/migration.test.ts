import { randomBytes, randomUUID } from "node:crypto";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { sale } from "../support/commands.ts";
import { createDatabase } from "../support/database.ts";
import { type Instance, partnerHost, spawnInstance, spawnPaybell } from "../support/instance.ts";
import { ipnOf } from "../support/receiver.ts";
import { callHttp, eventually } from "../support/service.ts";
import { at, type Life, live, mid, ok, openTid, placesOf, settled, view } from "./life.ts";
import { findOldVersion, installOldVersion } from "./old-version.ts";

const old = findOldVersion();
const { host, callsLoopback } = partnerHost();

let tree = "";
const how = { masterKey: randomBytes(32), callsLoopback };

async function stop(instance: Instance): Promise<void> {
  instance.signal("SIGTERM");
  expect(await instance.exited, instance.output()).toBe(0);
}

/**
 * A database that the old version has worked on, and everything that it showed before it ended: once in order, then by
 * kill -9, with a command at the acquirer and a POST in flight.
 */
async function leftBehind() {
  const database = await createDatabase({ isMigrated: false });
  onTestFinished(() => database.drop());
  const start = async (acquirerTimeoutMs: number) => {
    const env = { PAYBELL_ACQUIRER_TIMEOUT_MS: String(acquirerTimeoutMs) };
    const instance = await spawnInstance({ ...how, databaseUrl: database.url, tree, env });
    onTestFinished(async () => {
      instance.signal("SIGKILL");
      await instance.exited;
    });
    return instance;
  };
  const first = await start(1_000);
  const life = await live(first, host);
  const { quiet, parked, failing, paused } = life;
  onTestFinished(async () => {
    for (const { server } of [...quiet, parked, failing, paused]) await server.close();
  });
  const before = await view(first, life);
  const { body: audit } = await first.operator("GET", "/operator/v1/audit?limit=500");
  await stop(first);

  const second = await start(10_000);
  failing.server.answersAlways("hang");
  await failing.server.until((all) => all.at(-1)?.answer === "hang");
  const { status, body } = await callHttp(second.baseUrl, "POST", "/v1/commands", {
    key: failing.secrets.apiKey,
    json: sale({ tid: "T0000004", card: { token: "tok_slow_60000" } }),
    headers: { prefer: "respond-async" },
  });
  expect([status, body["status"]]).toEqual([202, "INIT"]);
  second.signal("SIGKILL");
  expect(await second.exited).toBeNull();
  return { database, life, before, audit: audit["items"] as unknown[], begun: String(body["id"]) };
}

/** This version on the same database. */
async function upgraded(databaseUrl: string): Promise<Instance> {
  const migrated = spawnPaybell(["migrate"], { DATABASE_URL: databaseUrl });
  expect(await migrated.exited, migrated.output()).toBe(0);
  const instance = await spawnInstance({ ...how, databaseUrl });
  onTestFinished(() => stop(instance));
  return instance;
}

async function everythingIsThere(instance: Instance, life: Life, before: Record<string, unknown>): Promise<void> {
  expect(Object.keys(before).length).toBeGreaterThan(100);
  // Later versions may show more.
  expect(await view(instance, life)).toMatchObject(before);
  for (const { partner, command, id } of life.ran) {
    const { status, body } = await at(instance, partner)("POST", "/v1/commands", command);
    expect([status, body["id"]], JSON.stringify(command)).toEqual([200, id]);
  }
  expect(await instance.report(life.reported.completions)).toEqual(life.reported.ids);
}

async function keysStillWork(instance: Instance, life: Life): Promise<void> {
  const statusOf = async (path: string, key: string) => (await callHttp(instance.baseUrl, "GET", path, { key })).status;
  const operators = async (key: string) =>
    (await instance.operator("GET", "/operator/v1/partners", undefined, key)).status;
  for (const key of life.apiKeys) expect(await statusOf("/v1/self", key)).toBe(200);
  expect(await statusOf("/v1/self", life.revokedApiKey)).toBe(401);
  expect(await operators(life.operatorToken)).toBe(200);
  expect(await operators(life.revokedToken)).toBe(401);
}

/** Pending IPNs reach the partner, in their order. */
async function pendingArrives(instance: Instance, { failing, paused, pending }: Life): Promise<void> {
  const since = new Map([failing, paused].map(({ server }) => [server, server.deliveries.length]));
  for (const { server } of [failing, paused]) server.answersAlways(204);
  await ok(instance.operator("POST", `/operator/v1/partners/${paused.id}/resume`));
  for (const [partner, ids] of [
    [failing, pending.slice(0, 2)],
    [paused, pending.slice(2)],
  ] as const) {
    await settled(instance, partner, "accepted");
    const places = placesOf(partner.server.deliveries.slice(since.get(partner.server)), ids);
    expect(places).not.toContain(-1);
    expect(places).toEqual(places.toSorted((a, b) => a - b));
  }
}

async function parkedIsRedelivered(instance: Instance, { parked }: Life): Promise<void> {
  parked.server.answersAlways(204);
  const asked = await ok(at(instance, parked)("POST", "/v1/redeliveries", { filter: {} }));
  expect(asked).toMatchObject({ matched: 2, redelivered: 2 });
  await settled(instance, parked, "accepted");
}

/** The Sale of 10,000 is voided now; the Sales of 20,000 and 40,000, and the Void of the latter, are older. */
async function openBatchSettles(instance: Instance, { quiet, open }: Life): Promise<void> {
  for (const [index, partner] of quiet.entries()) {
    const run = async (command: object) =>
      ok(at(instance, partner)("POST", "/v1/commands", { reqId: randomUUID(), ...command }));
    expect(await run({ command: "VOID", transactionId: open[index] })).toMatchObject({ status: "SUCCESS" });
    const { id } = await run({ command: "SETTLEMENT", tid: openTid(index), mid });
    const deliveries = await partner.server.until((all) => all.some(({ received }) => received?.ipn.id === id));
    const ipn = ipnOf(deliveries.find(({ received }) => received?.ipn.id === id));
    expect(ipn).toMatchObject({ status: "SUCCESS", saleQuantity: "3", saleTotalAmount: "70000", voidQuantity: "2" });
    expect(ipn).toMatchObject({ voidTotalAmount: "50000", totalAmount: index === 0 ? "120000" : "20000" });
    expect(await run(sale({ tid: openTid(index) }))).toMatchObject({ status: "SUCCESS" });
  }
}

async function auditContinues(instance: Instance, databaseUrl: string, audit: readonly unknown[]): Promise<void> {
  const { body } = await instance.operator("GET", "/operator/v1/audit?limit=500");
  expect(audit.length).toBeGreaterThan(10);
  expect(body["items"]).toEqual(expect.arrayContaining([...audit]));
  const verified = spawnPaybell(["audit", "verify"], { DATABASE_URL: databaseUrl });
  expect(await verified.exited, verified.output()).toBe(0);
}

// A shallow clone may lack the release that is upgraded.
describe.skipIf(old.commit === undefined)(`a database of ${old.title} is upgraded with all that is in it`, () => {
  beforeAll(async () => {
    tree = await installOldVersion(old);
  });

  test("after a clean stop and kill -9", async () => {
    const { database, life, before, audit, begun } = await leftBehind();
    const instance = await upgraded(database.url);
    await everythingIsThere(instance, life, before);
    await keysStillWork(instance, life);
    await pendingArrives(instance, life);
    await parkedIsRedelivered(instance, life);
    const { server } = life.failing;
    const delivered = await server.until((all) => all.some(({ received }) => received?.ipn.id === begun));
    const inDoubt = ipnOf(delivered.find(({ received }) => received?.ipn.id === begun));
    expect(inDoubt).toMatchObject({ status: "ERROR", isoResponseCode: "96" });
    await eventually("its Reversal", async () => {
      const { body } = await at(instance, life.failing)("GET", `/v1/transactions/${begun}`);
      return body["reversal"] === "done" ? true : undefined;
    });
    await openBatchSettles(instance, life);
    await auditContinues(instance, database.url, audit);
    allOpened(life);
  });
});

/** Everything was authentic, as the partner library judges it. */
function allOpened({ quiet, parked, failing, paused }: Life): void {
  for (const { server } of [...quiet, parked, failing, paused])
    expect(server.deliveries.filter(({ received }) => received === undefined)).toEqual([]);
}
