import { beforeEach, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lowestId, newId, type PartnerId } from "../../ids.ts";
import { insertPartner } from "../rows.fixture.ts";
import { dayMs, dayOf, idsOfDay, Partitions, partitionName } from "./partitions.ts";

let partnerId: PartnerId;
let nowMs = Date.UTC(2026, 10, 21, 23, 59);
const clock = { nowMs: () => nowMs };
const pool = () => connections.pool;
const partitions = (historyDays = 90) =>
  new Partitions({
    homes: connections.homes,
    clock,
    historyDays,
    proofDays: 400,
    contents: { isAsCommitted: () => true },
    dropLockTimeoutMs: 50,
  });

const connections = await openTestDatabase();

beforeEach(async () => {
  nowMs = Date.UTC(2026, 10, 21, 23, 59);
  const { rows } = await pool().query<{ name: string }>(
    `SELECT inhrelid::regclass::text AS name FROM pg_inherits
       WHERE inhparent IN ('notifications'::regclass, 'attempts'::regclass)`,
  );
  if (rows.length > 0) await pool().query(`DROP TABLE ${rows.map((row) => row.name).join(", ")}`);
  await pool().query("TRUNCATE pending, parked, endpoints, partners CASCADE");
  await pool().query("UPDATE history SET kept_from = 'epoch'");
  partnerId = await insertPartner(pool());
});

async function insertNotification(atMs: number, content = `{"b": 1, "a": "${atMs}"}`): Promise<string> {
  const id = lowestId(atMs).slice(0, 24) + newId().slice(24);
  await pool().query(
    "INSERT INTO notifications (partner_id, id, chain_id, command, content) VALUES ($1, $2, $2, 'SALE', $3)",
    [partnerId, id, content],
  );
  return id;
}

async function insertPending(id: string, scheduleStartMs: number): Promise<void> {
  await pool().query(
    `INSERT INTO pending (partner_id, id, chain_id, due_at, round, attempts_made, bytes, schedule_start)
     VALUES ($1, $2, $2, now(), 7, 3, 100, now() - $3 * interval '1 ms')`,
    [partnerId, id, Date.now() - scheduleStartMs],
  );
}

async function insertParked(id: string): Promise<void> {
  await pool().query(
    `INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
     VALUES ($1, $2, $2, 9, 5, 100, 'timeout')`,
    [partnerId, id],
  );
}

const exists = async (name: string) =>
  (await pool().query("SELECT to_regclass($1) IS NOT NULL AS found", [name])).rows[0].found as boolean;

test("days stand from yesterday to two weeks ahead, and are found by the ids of their day", async () => {
  const result = await partitions().maintain();
  expect(result).toEqual({ created: 16, dropped: 0, waiting: [], troubles: [], daysAhead: 14 });
  for (const atMs of [nowMs - dayMs, nowMs, nowMs + 14 * dayMs]) {
    const id = await insertNotification(atMs);
    const { rows } = await pool().query("SELECT tableoid::regclass::text AS name FROM notifications WHERE id = $1", [
      id,
    ]);
    expect(rows[0].name).toBe(partitionName("notifications", dayOf(atMs)));
  }
  await expect(insertNotification(nowMs + 15 * dayMs)).rejects.toThrow("no partition");
  expect(await partitions().maintain()).toMatchObject({ created: 0, daysAhead: 14 });
});

test("a new day is one more, and the day's place is there before it begins", async () => {
  await partitions().maintain();
  nowMs += 2 * 60_000;
  expect(await partitions().partitionsAhead()).toBe(13);
  expect(await partitions().maintain()).toMatchObject({ created: 1, daysAhead: 14 });
});

test("a day that only one of the tables has counts as missing, and is completed", async () => {
  await partitions().maintain();
  await pool().query(`DROP TABLE ${partitionName("attempts", dayOf(nowMs) + 3 * dayMs)}`);
  expect(await partitions().partitionsAhead()).toBe(2);
  expect(await partitions().maintain()).toMatchObject({ created: 1, daysAhead: 14 });
});

test("nothing stands before the first maintenance", async () => {
  expect(await partitions().partitionsAhead()).toBe(-1);
});

test("several instances may do it at once", async () => {
  const results = await Promise.all([1, 2, 3].map(() => partitions().maintain()));
  expect(results.flatMap((result) => result.troubles)).toEqual([]);
  expect(results.reduce((sum, result) => sum + result.created, 0)).toBe(16);
});

test("a partition has the keys, the indexes and the defaults of its table", async () => {
  await partitions().maintain();
  const { rows } = await pool().query("SELECT indexdef FROM pg_indexes WHERE tablename = $1 ORDER BY indexname", [
    partitionName("notifications", dayOf(nowMs)),
  ]);
  expect(rows.map((row) => row.indexdef.replace(/^.* USING/, ""))).toEqual([
    " btree (partner_id, xid, id) WHERE (xid > '0'::xid8)",
    " btree (partner_id, id)",
  ]);
  const id = await insertNotification(nowMs);
  const stored = await pool().query("SELECT xid::text, created_at FROM notifications WHERE id = $1", [id]);
  expect(Number(stored.rows[0].xid)).toBeGreaterThan(0);
});

test("making a day waits for no reader and no writer of history", async () => {
  await partitions().maintain();
  const client = await pool().connect();
  await client.query("BEGIN");
  await client.query("LOCK TABLE notifications, attempts IN ROW EXCLUSIVE MODE");
  nowMs += dayMs;
  expect(await partitions().maintain()).toMatchObject({ created: 1, troubles: [] });
  await client.query("COMMIT");
  client.release();
});

async function insertOldDay(daysAgo: number): Promise<number> {
  const day = dayOf(nowMs) - daysAgo * dayMs;
  await partitions().ensureDays([day]);
  return day;
}

test("days past retention are dropped, those within it stay", async () => {
  const old = await insertOldDay(91);
  const oldest = await insertOldDay(90);
  await insertNotification(old + 1);
  expect(await partitions().maintain()).toMatchObject({ dropped: 1, waiting: [] });
  expect(await exists(partitionName("notifications", old))).toBe(false);
  expect(await exists(partitionName("attempts", old))).toBe(false);
  expect(await exists(partitionName("notifications", oldest))).toBe(true);
  const { rows } = await pool().query("SELECT kept_from FROM history");
  expect(rows[0].kept_from).toEqual(new Date(oldest));
});

test("a pending or parked notification outlives its day as a parked one, its content byte for byte", async () => {
  const old = await insertOldDay(100);
  const content = '{"b":  1, "a": "ü"}';
  const [pending, parked, accepted] = [
    await insertNotification(old + 1, content),
    await insertNotification(old + 2, content),
    await insertNotification(old + 3, content),
  ];
  await insertPending(pending, old);
  await insertParked(parked);
  expect(await partitions().maintain()).toMatchObject({ dropped: 1, waiting: [] });
  const { rows } = await pool().query(
    `SELECT id, round, attempts_made, reason, notification->>'content' AS content, notification->>'id' AS nid
       FROM parked ORDER BY id`,
  );
  expect(rows).toEqual([
    { id: pending, round: 7, attempts_made: 3, reason: "retention", content, nid: pending },
    { id: parked, round: 9, attempts_made: 5, reason: "timeout", content, nid: parked },
  ]);
  expect((await pool().query("SELECT FROM pending")).rowCount).toBe(0);
  expect(rows.map((row) => row.id)).not.toContain(accepted);
});

test("a day waits for a schedule that may run still, and not for one that is over", async () => {
  await pool().query("UPDATE partners SET settings = $1", [{ retry: [5, 3_600] }]);
  const redelivered = await insertOldDay(101);
  const free = await insertOldDay(102);
  await insertPending(await insertNotification(redelivered + 1), Date.now() - 3_000_000);
  await insertPending(await insertNotification(free + 1), Date.now() - 4_000_000);
  const result = await partitions().maintain();
  expect(result).toMatchObject({ dropped: 1, waiting: [{ why: "a delivery is under way" }] });
  expect(await exists(partitionName("notifications", redelivered))).toBe(true);
  expect(await exists(partitionName("notifications", free))).toBe(false);
});

test("a day that is read for long is left for the next time, and nobody waits behind it", async () => {
  const old = await insertOldDay(100);
  const reader = await pool().connect();
  await reader.query("BEGIN");
  await reader.query("SELECT FROM notifications LIMIT 1");
  const { dropped, waiting } = await partitions().maintain();
  expect({ dropped, waiting }).toMatchObject({ dropped: 0, waiting: [{ why: "history was busy" }] });
  await reader.query("COMMIT");
  reader.release();
  expect(await exists(partitionName("notifications", old))).toBe(true);
  expect(await partitions().maintain()).toMatchObject({ dropped: 1, waiting: [] });
});

test("several instances may drop at once", async () => {
  await Promise.all([insertOldDay(100), insertOldDay(101)]);
  const results = await Promise.all([1, 2, 3].map(() => partitions().maintain()));
  expect(results.flatMap((result) => result.waiting)).toEqual([]);
});

test("history is kept for the longest schedule and a week, if its retention is shorter", async () => {
  const old = await insertOldDay(11);
  const needed = await insertOldDay(10);
  await pool().query("UPDATE partners SET settings = $1 WHERE id = $2", [
    { retry: [86_400, 86_400, 3_600] },
    partnerId,
  ]);
  expect(await partitions(9).maintain()).toMatchObject({ dropped: 1, prolonged: { days: 10, scheduleDays: 3 } });
  expect(await exists(partitionName("notifications", old))).toBe(false);
  expect(await exists(partitionName("notifications", needed))).toBe(true);
  expect((await partitions(10).maintain()).prolonged).toBeUndefined();
});

test("events go with their history, but an alert that is still to be sent stays", async () => {
  const insert = "INSERT INTO events (partner_id, id, kind, detail, alert_due_at) VALUES ($1, $2, 'parked', '{}', $3)";
  const old = lowestId(nowMs - 100 * dayMs);
  await pool().query(insert, [partnerId, old, null]);
  await pool().query(insert, [newId(), old, new Date()]);
  await pool().query(insert, [partnerId, lowestId(nowMs), null]);
  await partitions().maintain();
  const { rows } = await pool().query("SELECT id, alert_due_at IS NOT NULL AS due FROM events ORDER BY due");
  expect(rows).toEqual([
    { id: lowestId(nowMs), due: false },
    { id: old, due: true },
  ]);
});

test("a callback endpoint of which nothing was heard for as long as history goes, one that is gone stays", async () => {
  const insert = `
    INSERT INTO endpoints (partner_id, id, kind, target, queue, state, failures, updated_at)
    VALUES ($1, $2, 'origin', $3, $3, $4, $5, $6)`;
  const old = new Date(nowMs - 92 * dayMs);
  const all = [
    ["https://well.test", "closed", 0, old],
    ["https://lately.test", "closed", 0, new Date(nowMs - 88 * dayMs)],
    ["https://failing.test", "closed", 1, old],
    ["https://open.test", "open", 5, old],
    ["https://gone.test", "gone", 1, old],
  ] as const;
  for (const [target, state, failures, at] of all) {
    await pool().query(insert, [partnerId, newId(), target, state, failures, at]);
  }
  await partitions().maintain();
  const { rows } = await pool().query<{ target: string }>("SELECT target FROM endpoints ORDER BY id");
  expect(rows.map(({ target }) => target)).toEqual(["https://lately.test", "https://gone.test"]);
});

test("a day's ids are those made within it", () => {
  const day = dayOf(nowMs);
  const [from, to] = idsOfDay(day);
  const id = (atMs: number) => lowestId(atMs).slice(0, 14) + newId().slice(14);
  expect([id(day) >= from, id(day + dayMs - 1) < to, id(day + dayMs) >= to]).toEqual([true, true, true]);
});
