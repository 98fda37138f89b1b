import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import type { Attempt, Claimed, ClaimLimits, Outcome } from "../delivery/store.ts";
import type { PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { PostgresDeliveries } from "./deliveries.ts";
import { createHistory, insertInstance, insertPartner, sampleReport } from "./rows.fixture.ts";

let database: TestDatabase;
let connections: Database;
let completions: PostgresCompletions;
let deliveries: PostgresDeliveries;
let partnerId: PartnerId;
let instance: Instance;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 12, onIdleError: () => {} });
  await createHistory(connections.pool);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
  deliveries = new PostgresDeliveries(connections.engine);
});

beforeEach(async () => {
  await connections.pool.query("TRUNCATE pending, parked, instances");
  partnerId = await insertPartner(connections.pool);
  instance = await insertInstance(connections.pool);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

const limits: ClaimLimits = { rowsMax: 100, rowsPerPartnerMax: 10, bytesMax: 1e9, without: [], probeLeaseMs: 1_000 };

const attempt: Attempt = {
  startedAtMs: Date.now(),
  durationMs: 12,
  url: "https://partner.example/ipn",
  address: "192.0.2.1",
  httpStatus: 200,
  reason: null,
  detail: null,
  answer: null,
  keyId: "key",
};

async function report(count: number, lease: Instance | null = null, of = partnerId): Promise<void> {
  await Promise.all(Array.from({ length: count }, () => completions.report(sampleReport(of, lease))));
}

async function claimOne(by = instance): Promise<Claimed> {
  const [claimed] = await deliveries.claim(by, { ...limits, rowsMax: 1 });
  if (claimed === undefined) throw new Error("nothing was due");
  return claimed;
}

async function pendingBytes(): Promise<{ id: string; bytes: number }[]> {
  return (await connections.pool.query<{ id: string; bytes: number }>("SELECT id, bytes FROM pending")).rows;
}

function outcome(claimed: Claimed, next: Outcome["next"], by = instance): Outcome {
  const { id, claimNo } = claimed;
  return {
    partnerId: claimed.partnerId,
    id,
    claimNo,
    instance: by,
    attemptsMade: claimed.attemptsMade + 1,
    attempt,
    next,
  };
}

async function pending() {
  const { rows } = await connections.pool.query(
    "SELECT id, instance_id, claim_no, attempts_made, due_at > now() AS later FROM pending ORDER BY id",
  );
  return rows;
}

test("every partner with due work gets its share, whatever another's backlog", async () => {
  const small = await insertPartner(connections.pool);
  await report(200);
  await report(3, null, small);
  const claimed = await deliveries.claim(instance, { ...limits, rowsMax: 20 });
  expect(claimed.filter((one) => one.partnerId === partnerId)).toHaveLength(10);
  expect(claimed.filter((one) => one.partnerId === small)).toHaveLength(3);
});

test("with more partners than rows asked for, the next claim goes on behind the one served last", async () => {
  const partners = [partnerId];
  for (let i = 0; i < 3; i += 1) partners.push(await insertPartner(connections.pool));
  for (const one of partners) await report(2, null, one);
  const served: PartnerId[] = [];
  for (let i = 0; i < 4; i += 1) {
    const claimed = await deliveries.claim(instance, { ...limits, rowsMax: 1, rowsPerPartnerMax: 1 });
    served.push(...claimed.map((one) => one.partnerId));
  }
  expect(new Set(served).size).toBe(4);
});

test("a claim takes each row once, brings its content, and raises the claim number", async () => {
  await report(5);
  const [first, second] = await Promise.all([deliveries.claim(instance, limits), deliveries.claim(instance, limits)]);
  expect(first.length + second.length).toBe(5);
  const [one] = [...first, ...second];
  expect(one).toMatchObject({ claimNo: 1, attemptsMade: 0, command: "SALE" });
  expect(JSON.parse(one?.content ?? "")).toMatchObject({ kind: "card", command: "SALE" });
});

test("what is leased, later due, paused or left out is not claimed", async () => {
  await report(1, instance);
  expect(await deliveries.claim(instance, limits)).toEqual([]);
  await report(1);
  expect(await deliveries.claim(instance, { ...limits, without: [partnerId] })).toEqual([]);
  await connections.pool.query("UPDATE partners SET state = 'paused' WHERE id = $1", [partnerId]);
  expect(await deliveries.claim(instance, limits)).toEqual([]);
  await connections.pool.query("UPDATE partners SET state = 'active' WHERE id = $1", [partnerId]);
  await connections.pool.query("UPDATE pending SET due_at = now() + interval '1 hour'");
  expect(await deliveries.claim(instance, limits)).toEqual([]);
});

test("an accepted notification is gone from pending, and its attempt is recorded", async () => {
  await report(1);
  const claimed = await claimOne();
  expect(await deliveries.record(outcome(claimed, { kind: "accepted" }))).toBe("applied");
  expect(await pending()).toEqual([]);
  const { rows } = await connections.pool.query("SELECT * FROM attempts WHERE id = $1", [claimed.id]);
  expect(rows).toMatchObject([{ claim_no: 1, attempt_no: 1, http_status: 200, url: attempt.url, duration_ms: 12 }]);
});

test("a failed attempt makes the row due again later, free for every instance", async () => {
  await report(1);
  const claimed = await claimOne();
  expect(await deliveries.record(outcome(claimed, { kind: "retry", delayMs: 60_000 }))).toBe("applied");
  expect(await pending()).toMatchObject([{ instance_id: null, claim_no: 1, attempts_made: 1, later: true }]);
});

test("an answer that is bytes, not text, is kept as it is", async () => {
  await report(1);
  const claimed = await claimOne();
  const answer = Buffer.from([0x00, 0xff, 0xd8, 0x5c, 0x22]);
  await deliveries.record({
    ...outcome(claimed, { kind: "retry", delayMs: 1 }),
    attempt: { ...attempt, httpStatus: 500, reason: "status", answer },
  });
  const { rows } = await connections.pool.query("SELECT answer FROM attempts WHERE id = $1", [claimed.id]);
  expect(rows).toEqual([{ answer }]);
});

test("a row that is larger than the bytes that are free does not keep smaller ones behind it back", async () => {
  await report(3);
  await connections.pool.query("UPDATE pending SET bytes = 20");
  await connections.pool.query(`UPDATE pending SET bytes = 90, due_at = due_at - interval '1 second'
    WHERE id = (SELECT min(id::text)::uuid FROM pending)`);
  const [large, ...small] = (await pendingBytes()).sort((a, b) => b.bytes - a.bytes);
  const claim = (bytesMax: number, oversizeAllowed: boolean) =>
    deliveries.claim(instance, { ...limits, bytesMax, oversizeAllowed });
  const idsOf = (rows: readonly { readonly id: string }[]) => rows.map(({ id }) => id).sort();
  expect(idsOf(await claim(50, false))).toEqual(idsOf(small));
  expect(await claim(50, false)).toEqual([]);
  expect(idsOf(await claim(50, true))).toEqual([large?.id]);
});

test("a row that is larger than all bytes goes alone", async () => {
  await report(3);
  await connections.pool.query("UPDATE pending SET bytes = 20");
  await connections.pool.query(`UPDATE pending SET bytes = 90, due_at = due_at - interval '1 second'
    WHERE id = (SELECT min(id::text)::uuid FROM pending)`);
  expect(await deliveries.claim(instance, { ...limits, bytesMax: 50, oversizeAllowed: true })).toHaveLength(1);
});

test("a parked notification is kept with its reason, and no longer claimed", async () => {
  await report(1);
  const claimed = await claimOne();
  const failed = { ...attempt, httpStatus: 503, reason: "status" as const };
  expect(await deliveries.record({ ...outcome(claimed, { kind: "parked" }), attempt: failed })).toBe("applied");
  expect(await pending()).toEqual([]);
  const { rows } = await connections.pool.query("SELECT * FROM parked WHERE id = $1", [claimed.id]);
  expect(rows).toMatchObject([{ reason: "status", attempts_made: 1, claim_no: 1 }]);
});

test("rows of an instance whose lease ran out are due for the others; a living one keeps its own", async () => {
  const dead = await insertInstance(connections.pool, -1_000);
  await report(3, dead);
  await report(2, instance);
  expect(await deliveries.releaseDead(100)).toBe(3);
  expect(await deliveries.claim(instance, limits)).toHaveLength(3);
  expect(await deliveries.releaseDead(100)).toBe(0);
});

test("rows taken under an earlier epoch of a living instance are released too", async () => {
  await report(2, instance);
  await connections.pool.query("UPDATE instances SET epoch = 2 WHERE id = $1", [instance.id]);
  expect(await deliveries.releaseDead(100)).toBe(2);
});

test("a late failure of a holder that was given up records its attempt and changes nothing else", async () => {
  await report(1);
  const late = await claimOne();
  await connections.pool.query("UPDATE instances SET expires_at = now() WHERE id = $1", [instance.id]);
  await deliveries.releaseDead(100);
  const other = await insertInstance(connections.pool);
  const now = await claimOne(other);
  expect(now.claimNo).toBe(2);
  expect(await deliveries.record(outcome(late, { kind: "retry", delayMs: 1 }))).toBe("overtaken");
  expect(await pending()).toMatchObject([{ instance_id: other.id, claim_no: 2, attempts_made: 0 }]);
  const { rows } = await connections.pool.query("SELECT claim_no FROM attempts WHERE id = $1", [late.id]);
  expect(rows).toEqual([{ claim_no: 1 }]);
});

test("a late 2xx deletes the row whoever owns it", async () => {
  await report(1);
  const late = await claimOne();
  await connections.pool.query("UPDATE instances SET expires_at = now() WHERE id = $1", [instance.id]);
  await deliveries.releaseDead(100);
  await claimOne(await insertInstance(connections.pool));
  expect(await deliveries.record(outcome(late, { kind: "accepted" }))).toBe("applied");
  expect(await pending()).toEqual([]);
});

test("an outcome recorded twice counts once", async () => {
  await report(1);
  const claimed = await claimOne();
  const failed = outcome(claimed, { kind: "retry", delayMs: 60_000 });
  await deliveries.record(failed);
  expect(await deliveries.record(failed)).toBe("overtaken");
  expect(await pending()).toMatchObject([{ attempts_made: 1 }]);
});

test("what was taken and not sent is given back without counting an attempt", async () => {
  await report(1);
  const claimed = await claimOne();
  await deliveries.giveBack(instance, [claimed], 0);
  expect(await claimOne()).toMatchObject({ id: claimed.id, claimNo: 2, attemptsMade: 0 });
});

test("what follows from an attempt counts even where its day of history is gone", async () => {
  await report(2);
  const [gone, kept] = [await claimOne(), await claimOne()];
  await connections.pool.query("ALTER TABLE attempts DETACH PARTITION attempts_now");
  try {
    await Promise.all([gone, kept].map((one) => deliveries.record(outcome(one, { kind: "accepted" }))));
  } finally {
    await connections.pool.query("DROP TABLE attempts_now");
  }
  expect(await pending()).toEqual([]);
});
