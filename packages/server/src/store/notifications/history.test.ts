import { createPublicKey, hash, verify } from "node:crypto";
import { canonicalJson } from "@paybell/contract";
import type { Pool } from "pg";
import { afterAll, expect, test } from "vitest";
import type { NotificationId } from "../../ids.ts";
import { type HistoryRow, readDay } from "../../notifications/history-export.ts";
import { dayMs, dayOf, idsOfDay, Partitions } from "../schema/partitions.ts";
import { postgresHistory } from "./history.ts";
import { idAt, insertAttempt, insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";
import { readHistory } from "./page.ts";
import { keepProofs } from "./proofs.ts";

const bench = await openBench();
afterAll(() => bench.close());

/** The day may end while the tests run. */
const nowMs = Date.now();
const today = dayOf(nowMs);
const dayText = (startMs: number) => new Date(startMs).toISOString().slice(0, 10);

async function insertMany(partnerId: Parameters<typeof insertNotification>[1], atMs: number, count: number) {
  const ids: NotificationId[] = [];
  for (let nth = 0; nth < count; nth += 1) {
    ids.push(await insertNotification(bench.pool, partnerId, { id: idAt(atMs + nth) }));
  }
  return ids;
}

async function rowsOf(pages: Promise<AsyncIterable<readonly HistoryRow[]>>): Promise<readonly HistoryRow[]> {
  const all: HistoryRow[] = [];
  for await (const rows of await pages) all.push(...rows);
  return all;
}

test("a day is exported whole, page by page, and nothing of another day or partner with it", async () => {
  const [one, other] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  const yesterday = today - dayMs;
  await bench.partitions.ensureDays([yesterday - dayMs]);
  await insertNotification(bench.pool, one.id, { id: idAt(yesterday - 1) });
  const ids = await insertMany(one.id, yesterday, 450);
  await insertAttempt(bench.pool, one.id, ids[7] as NotificationId, { attemptNo: 2 });
  await insertAttempt(bench.pool, one.id, ids[7] as NotificationId, { attemptNo: 1, reason: "timeout" });
  const parked = await insertNotification(bench.pool, other.id, { id: idAt(today - 1), state: "parked" });
  await insertNotification(bench.pool, one.id, { id: idAt(today), state: "pending" });
  const history = postgresHistory(bench.homes);
  const day = await rowsOf(readDay(history, dayText(yesterday), today + 60_000));
  expect(new Set(day.map(({ id }) => id))).toEqual(new Set([...ids, parked]));
  expect(day).toHaveLength(451);
  expect(day.find(({ id }) => id === parked)).toMatchObject({ state: "parked", attempts: [] });
  expect(day.find(({ id }) => id === ids[7])).toMatchObject({
    state: "accepted",
    attempts: [
      { attemptNo: 1, httpStatus: 503, reason: "timeout" },
      { attemptNo: 2, httpStatus: 200, reason: null, startedAtMs: Date.UTC(2026, 10, 21, 10) },
    ],
  });
  const ownOf = async (partnerId: typeof one.id) =>
    (await rowsOf(readDay(history, dayText(yesterday), today + 60_000, partnerId))).map(({ id }) => id);
  expect([await ownOf(one.id), await ownOf(other.id)]).toEqual([ids, [parked]]);
});

test("a day that is not over, and one that was dropped, are refused and not taken for empty", async () => {
  const history = postgresHistory(bench.homes);
  await expect(readDay(history, dayText(today), nowMs)).rejects.toMatchObject({ code: "invalid_value" });
  // What was made just before midnight may not be committed yet.
  const soon = readDay(history, dayText(today - dayMs), today + 59_999);
  await expect(soon).rejects.toMatchObject({ code: "invalid_value" });
  // A reported Void waits for its original for ten minutes, also over midnight; its notification is of the day before then.
  const [one, other] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  await bench.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, notification_id, notify_at)
     VALUES ($1, $2, 'switch', 'VOID', 'SUCCESS', $2, '{}', $2, now())`,
    [one.id, idAt(today - 1)],
  );
  const soonest = (partnerId?: typeof one.id) => readDay(history, dayText(today - dayMs), today + 60_000, partnerId);
  for (const of of [undefined, one.id]) await expect(soonest(of)).rejects.toMatchObject({ code: "invalid_value" });
  await soonest(other.id);
  await readDay(history, dayText(today - 2 * dayMs), today + 60_000);
  await bench.pool.query("UPDATE transactions SET notify_at = NULL");
  await soonest();
  await expect(readDay(history, "1969-12-31", nowMs)).rejects.toMatchObject({ code: "not_found" });
  const later = today + dayMs;
  const kept = { ...history, keptFromMs: async () => today };
  await expect(readDay(kept, dayText(today - dayMs), later)).rejects.toMatchObject({ code: "not_found" });
  let keptFromMs = 0;
  const dropping = { ...history, keptFromMs: async () => keptFromMs };
  const meanwhile = readDay(dropping, dayText(today - dayMs), later);
  await meanwhile;
  keptFromMs = today;
  await expect(rowsOf(meanwhile)).rejects.toMatchObject({ code: "not_found" });
});

test("a delivery can be proved after its history was dropped, until its proof is dropped too", async () => {
  const partner = await registerPartner(bench.pool);
  const longAgo = today - 100 * dayMs;
  await bench.partitions.ensureDays([longAgo]);
  const accepted = await insertNotification(bench.pool, partner.id, { id: idAt(longAgo + 1) });
  await insertAttempt(bench.pool, partner.id, accepted, { attemptNo: 1, reason: "timeout" });
  await insertAttempt(bench.pool, partner.id, accepted, { attemptNo: 2 });
  const parked = await insertNotification(bench.pool, partner.id, { id: idAt(longAgo + 2), state: "parked" });
  await insertAttempt(bench.pool, partner.id, parked, { attemptNo: 1, reason: "timeout" });
  const parkedAgain = await insertNotification(bench.pool, partner.id, { id: idAt(longAgo + 3), state: "parked" });
  await insertAttempt(bench.pool, partner.id, parkedAgain, { attemptNo: 1 });
  const { proof: whole } = await bench.notifications.prove(accepted);
  // An instance was killed after it had kept the proofs.
  await keepProofs(bench.pool, idsOfDay(longAgo), bench.contents);
  expect(await bench.partitions.maintain()).toMatchObject({ dropped: 1, waiting: [] });

  const { proof, signature } = await bench.notifications.prove(accepted);
  expect(proof).toMatchObject({
    id: accepted,
    partnerId: partner.id,
    state: "accepted",
    attempts: 2,
    httpStatus: 200,
    contentSha256: whole.contentSha256,
    startedAt: "2026-11-21T10:00:00.000Z",
  });
  const key = createPublicKey({ key: Buffer.from(signature.publicKey, "base64"), format: "der", type: "spki" });
  const signed = Buffer.from(canonicalJson(JSON.parse(JSON.stringify(proof))));
  expect(verify(null, signed, key, Buffer.from(signature.value, "base64"))).toBe(true);
  expect(await bench.store.keptProof(parked)).toBeUndefined();
  // Its redelivery failed, after it had been accepted.
  expect((await bench.notifications.prove(parkedAgain)).proof).toMatchObject({ id: parkedAgain, state: "accepted" });
  await expect(bench.notifications.prove(parked)).rejects.toMatchObject({ code: "not_found" });

  const { homes } = bench;
  const clock = { nowMs: () => Date.now() };
  await new Partitions({ homes, clock, historyDays: 90, proofDays: 99, contents: bench.contents }).maintain();
  await expect(bench.notifications.prove(accepted)).rejects.toMatchObject({ code: "not_found" });
});

test("a notification that somebody changed leaves no proof when its history is dropped, and is named", async () => {
  const partner = await registerPartner(bench.pool);
  const longAgo = today - 120 * dayMs;
  await bench.partitions.ensureDays([longAgo]);
  const insertSealed = async (nth: number) => {
    const id = await insertNotification(bench.pool, partner.id, { id: idAt(longAgo + nth), content: `{"nth":${nth}}` });
    const content = `{"nth":${nth}}`;
    const fixed = { partnerId: partner.id, id, command: "SALE", callBackUrl: null, originalId: null, content } as const;
    const values = [id, bench.contents.of(fixed)];
    await bench.pool.query("UPDATE notifications SET content_mac = $2 WHERE id = $1", values);
    await insertAttempt(bench.pool, partner.id, id, { attemptNo: 1 });
    return id;
  };
  const [changed, intact] = [await insertSealed(1), await insertSealed(2)];
  await bench.pool.query(`UPDATE notifications SET content = '{"nth":9}' WHERE id = $1`, [changed]);
  expect(await bench.partitions.maintain()).toMatchObject({ dropped: 1, waiting: [] });
  expect(bench.changed).toEqual([changed]);
  expect(await bench.store.keptProof(changed)).toBeUndefined();
  expect(await bench.store.keptProof(intact)).toMatchObject({ contentSha256: hash("sha256", '{"nth":2}') });
});

test("the timeline of the database is read as PostgreSQL writes it, in hexadecimal", async () => {
  const row = { system_identifier: "-1", timeline: "0000001A", horizon: "7", kept_from: new Date(0), now: new Date(1) };
  const { cluster } = await readHistory({ query: async () => ({ rows: [row] }) } as unknown as Pool);
  expect(cluster).toEqual({ systemIdentifier: 2n ** 64n - 1n, timeline: 26 });
});
