import { createHash } from "node:crypto";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import { afterSighting } from "../delivery/breaker.ts";
import { urlQueue } from "../delivery/endpoints.ts";
import type { Attempt, Claimed, ClaimLimits } from "../delivery/store.ts";
import type { PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { PostgresDeliveries } from "./deliveries.ts";
import { PostgresEndpoints } from "./endpoints.ts";
import { createHistory, insertInstance, insertPartner, sampleNotification, sampleReport } from "./rows.fixture.ts";

const origin = "https://partner.example";
const left = `${origin}/left?shop=Ä`;
const right = `${origin}/right`;
const limits: ClaimLimits = { rowsMax: 100, rowsPerPartnerMax: 10, bytesMax: 1e9, without: [], probeLeaseMs: 1_000 };

let database: TestDatabase;
let connections: Database;
let completions: PostgresCompletions;
let endpoints: PostgresEndpoints;
let partnerId: PartnerId;
/** Two instances, as two processes have them: nothing is shared but the database. */
let seer: { instance: Instance; deliveries: PostgresDeliveries };
let other: { instance: Instance; deliveries: PostgresDeliveries; setAside: number };

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 12, onIdleError: () => {} });
  await createHistory(connections.pool);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
  endpoints = new PostgresEndpoints(connections);
});

beforeEach(async () => {
  await connections.pool.query("TRUNCATE pending, parked, endpoints");
  partnerId = await insertPartner(connections.pool);
  const { engine } = connections;
  const deliveries = new PostgresDeliveries(engine, {
    breaker: (standing, sighting) => afterSighting(standing, sighting, 0.5),
  });
  seer = { instance: await insertInstance(connections.pool), deliveries };
  other = {
    instance: await insertInstance(connections.pool),
    deliveries: new PostgresDeliveries(engine, { onSetAside: () => (other.setAside += 1) }),
    setAside: 0,
  };
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

async function report(count: number, callBackUrl: string | null, of = partnerId): Promise<void> {
  for (let i = 0; i < count; i += 1) {
    const { id, ...rest } = sampleReport(of, null);
    const notification = { ...sampleNotification(of, id, null), callBackUrl };
    await completions.report({ ...rest, id, callBackUrl, notification });
  }
}

/** One of the partner's is answered with 410. */
async function see410(url: string, claimed: Claimed): Promise<void> {
  const attempt: Attempt = {
    startedAtMs: Date.now(),
    durationMs: 1,
    url,
    address: null,
    httpStatus: 410,
    reason: "gone",
    detail: null,
    answer: null,
    keyId: null,
  };
  const { id, claimNo } = claimed;
  const seen = { partnerId, reason: "gone", retryAfterMs: null, isProbe: false, atMs: Date.now() } as const;
  await seer.deliveries.record({
    partnerId,
    id,
    claimNo,
    instance: seer.instance,
    attemptsMade: 1,
    attempt,
    next: { kind: "retry", delayMs: 0 },
    sightings: [{ ...seen, kind: "url", target: url, queue: urlQueue(url), sign: "gone" }],
  });
}

async function claimOne(): Promise<Claimed> {
  const [claimed] = await seer.deliveries.claim(seer.instance, { ...limits, rowsMax: 1 });
  if (claimed === undefined) throw new Error("nothing was due");
  return claimed;
}

async function queues(): Promise<readonly string[]> {
  const { rows } = await connections.pool.query<{ origin: string }>("SELECT origin FROM pending ORDER BY origin");
  return rows.map((row) => row.origin);
}

test("from the moment its 410 is recorded, no claim of any instance brings anything for that URL", async () => {
  await report(5, left);
  await see410(left, await claimOne());
  await report(3, right);
  const claimed = await other.deliveries.claim(other.instance, limits);
  expect(claimed.map(({ callBackUrl }) => callBackUrl)).toEqual([right, right, right]);
  expect(other.setAside).toBe(1);
  const gone = `${origin} ${createHash("sha256").update(left).digest("hex")}`;
  expect(await queues()).toEqual([origin, origin, origin, gone, gone, gone, gone, gone]);
  // What comes later, of whoever did not hear of it, is no exception.
  await report(2, left);
  expect(await other.deliveries.claim(other.instance, limits)).toEqual([]);
  expect(await seer.deliveries.claim(seer.instance, limits)).toEqual([]);
  expect(other.setAside).toBe(2);
});

test("what waits for it leaves when it is closed by hand", async () => {
  await report(4, left);
  await see410(left, await claimOne());
  expect(await other.deliveries.claim(other.instance, limits)).toEqual([]);
  const [found] = await endpoints.search({ partnerId, limit: 10 });
  if (found === undefined) throw new Error("no endpoint was recorded");
  await endpoints.close(found.id, partnerId);
  expect(await other.deliveries.claim(other.instance, limits)).toHaveLength(4);
});

test("it hides what is behind it for one claim, and whoever claims is told to claim again", async () => {
  await report(limits.rowsPerPartnerMax + 1, left);
  await report(1, right);
  await see410(left, await claimOne());
  expect(await other.deliveries.claim(other.instance, limits)).toEqual([]);
  expect(other.setAside).toBe(1);
  expect(await other.deliveries.claim(other.instance, limits)).toMatchObject([{ callBackUrl: right }]);
});

test("another partner's delivery to the same URL is its own affair, and so is the registered URL's", async () => {
  await report(1, left);
  await see410(left, await claimOne());
  const neighbour = await insertPartner(connections.pool);
  await report(1, left, neighbour);
  await report(1, null);
  const claimed = await other.deliveries.claim(other.instance, limits);
  expect(claimed.map((one) => one.partnerId).sort()).toEqual([partnerId, neighbour].sort());
});

test("a probe of the origin is not spent on a URL that is gone", async () => {
  await report(2, left);
  await see410(left, await claimOne());
  await connections.pool.query(
    `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, probe_at)
     VALUES ($1, gen_random_uuid(), 'origin', $2, $2, 'open', now())`,
    [partnerId, origin],
  );
  await report(1, right);
  expect(await other.deliveries.claim(other.instance, limits)).toMatchObject([{ callBackUrl: right, isProbe: true }]);
});
