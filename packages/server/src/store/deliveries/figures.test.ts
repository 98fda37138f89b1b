import { afterAll, beforeEach, expect, test } from "vitest";
import { newId } from "../../ids.ts";
import { FigureCounter, type MinuteCounts, Overviews } from "../../notifications/overview.ts";
import type { Partner } from "../../partners/partner.ts";
import { idAt, insertNotification, openBench, registerPartner } from "../notifications/notifications.fixture.ts";
import { postgresFigures } from "./figures.ts";
import { postgresCurrentCounts } from "./pending-status.ts";

let partner: Partner;
const bench = await openBench();
const figures = postgresFigures(bench.homes);
beforeEach(async () => {
  await bench.pool.query("TRUNCATE delivery_figures, notifications, parked, partners CASCADE");
  partner = await registerPartner(bench.pool);
});
afterAll(() => bench.close());

type Attempted = Parameters<FigureCounter["count"]>[1];

/** Counts an attempt that took 40 ms, of a notification created a second before its end. */
function count(counter: FigureCounter, kind: "accepted" | "retry" | "parked", atMs = Date.now()): void {
  const attempt = { startedAtMs: atMs - 40, durationMs: 40, reason: kind === "accepted" ? null : "status" };
  const delivery = { partnerId: partner.id, scheduleStartMs: atMs - 1_000 };
  counter.count(delivery, { attempt, next: { kind } } as unknown as Attempted);
}

test("why a partner's newest attempts failed is grouped, and attempts of before the period are not in it", async () => {
  const nowMs = Date.now();
  // Retries go on for days.
  const id = idAt(nowMs - 86_400_000);
  const one = await insertNotification(bench.pool, partner.id, { id, state: "pending" });
  const attempted = `
    INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url, http_status, reason)
    SELECT $1, $2, 1, i.no, $1, to_timestamp($3 / 1000.0) - i.ago * interval '1 minute', 5, 'https://a.example', i.status,
      i.reason
    FROM (VALUES (1, 200, 503, 'status'), (2, 9, 400, 'status'), (3, 6, 400, 'status'), (4, 3, NULL, 'timeout'),
      (5, 1, 204, NULL)) AS i (no, ago, status, reason)`;
  await bench.pool.query(attempted, [partner.id, one, nowMs]);
  const found = await figures.failures(partner.id, nowMs - 3_600_000);
  expect(found).toEqual([
    { reason: "status", httpStatus: 400, attempts: 2, lastAtMs: expect.closeTo(nowMs - 6 * 60_000, -1) },
    { reason: "timeout", httpStatus: null, attempts: 1, lastAtMs: expect.closeTo(nowMs - 3 * 60_000, -1) },
  ]);
  expect(await figures.failures(newId<"partner">(), nowMs - 3_600_000)).toEqual([]);
});

test("the counts of two instances in one minute are added up, for a partner and for all", async () => {
  const counters = [new FigureCounter(figures), new FigureCounter(figures)];
  const atMs = Date.now();
  for (const counter of counters) {
    count(counter, "accepted", atMs);
    count(counter, "retry", atMs);
    count(counter, "parked", atMs);
    await counter.flush();
    await counter.flush();
  }
  const overview = new Overviews({
    figures,
    standing: postgresCurrentCounts(bench.homes),
    pending: async () => ({ count: 0, oldestMs: undefined }),
    troubles: { all: async () => [], of: async () => null, parked: async () => [], parkedOf: async () => null },
    nowMs: Date.now,
  });
  await insertNotification(bench.pool, partner.id, { state: "parked" });
  const counted = { accepted: 2, failed: 4, parked: 2 };
  for (const span of ["hour", "day", "week"] as const) {
    expect(await overview.of(partner.id, span)).toMatchObject(counted);
    const all = await overview.all(span);
    expect(all.figures).toMatchObject(counted);
    expect(all.failing).toEqual([{ partnerId: partner.id, ...counted }]);
    expect(all.standing).toMatchObject({ parked: 1, tripped: 0 });
  }
  const [point] = await figures.read(partner.id, "week", atMs - 2 * 3_600_000);
  expect(point?.attemptMs.reduce((all, count) => all + count, 0)).toBe(6);
  const { attemptP50Ms, deliveryP99Ms } = await overview.of(partner.id, "hour");
  expect(attemptP50Ms).toBeGreaterThan(30);
  expect(attemptP50Ms).toBeLessThanOrEqual(50);
  expect(deliveryP99Ms).toBeGreaterThan(700);
  expect(deliveryP99Ms).toBeLessThanOrEqual(1_000);
  expect(await overview.of(newId<"partner">(), "hour")).toMatchObject({ accepted: 0, points: [], attemptP50Ms: null });
});

test("a count that could not be added is kept for the next time", async () => {
  let isAway = true;
  const store = {
    ...figures,
    add: (rows: readonly MinuteCounts[]) => (isAway ? Promise.reject(new Error("away")) : figures.add(rows)),
  };
  const counter = new FigureCounter(store);
  // Both are of one hour.
  const atMs = Date.now();
  count(counter, "accepted", atMs);
  await expect(counter.flush()).rejects.toThrow("away");
  isAway = false;
  count(counter, "accepted", atMs);
  await counter.flush();
  const [point] = await figures.read(partner.id, "week", atMs - 2 * 3_600_000);
  expect(point?.accepted).toBe(2);
});

test("figures older than any query are dropped", async () => {
  const counter = new FigureCounter(figures);
  const twoDaysAgoMs = Date.now() - 2 * 86_400_000;
  count(counter, "accepted", twoDaysAgoMs);
  await counter.flush();
  count(counter, "retry", twoDaysAgoMs);
  await counter.flush();
  expect(await figures.failing(Date.now() - 3_600_000, 10)).toEqual([]);
  expect(await figures.read(partner.id, "week", Date.now() - 3_600_000)).toEqual([]);
  await figures.dropOld(Date.now());
  expect(await figures.read(partner.id, "day", 0)).toEqual([]);
  expect(await figures.read(partner.id, "week", 0)).toHaveLength(1);
  await figures.dropOld(Date.now() + 9 * 86_400_000);
  expect(await figures.read(partner.id, "week", 0)).toEqual([]);
});

test.each([
  ["day", 24],
  ["week", 7 * 24],
] as const)("figures with which a %s begins are kept", async (span, hours) => {
  const counter = new FigureCounter(figures);
  count(counter, "accepted", Date.now() - hours * 3_600_000);
  await counter.flush();
  await figures.dropOld(Date.now());
  expect(await figures.read(partner.id, span, 0)).toHaveLength(1);
});

test("partners of which attempts failed within the hour of a time, or since, are found, most first", async () => {
  const hourMs = Math.floor(Date.now() / 3_600_000) * 3_600_000;
  const failed = (partnerId: Partner["id"], minuteMs: number, failed: number): MinuteCounts => ({
    ...{ partnerId, minuteMs, accepted: 0, failed, parked: 0, attemptMs: [], deliveryMs: [] },
  });
  const [few, most] = [await registerPartner(bench.pool), await registerPartner(bench.pool)];
  await figures.add([
    failed(few.id, hourMs, 1),
    failed(most.id, hourMs + 60_000, 3),
    failed(partner.id, hourMs, 2),
    failed(few.id, hourMs - 60_000, 9),
  ]);
  const found = await figures.failing(hourMs + 1_800_000, 2);
  expect(found.map((one) => [one.partnerId, one.failed])).toEqual([
    [most.id, 3],
    [partner.id, 2],
  ]);
});

test("what is parked, tripped or waiting at present is counted by its state", async () => {
  await bench.pool.query(
    `WITH reversed AS (
       INSERT INTO reversals (partner_id, transaction_id, tid, state)
       SELECT $1, gen_random_uuid(), 'T1', state FROM unnest(ARRAY['PENDING', 'PARKED', 'PARKED', 'DONE']) AS state),
     settled AS (
       INSERT INTO settlements (partner_id, id, kind, tid, batch_id, tries)
       SELECT $1, gen_random_uuid(), 'SETTLEMENT', 'T1', $1, tries FROM generate_series(0, 4) AS tries)
     INSERT INTO endpoints (partner_id, id, kind, target, queue, state)
     SELECT $1, gen_random_uuid(), 'url', state, state, state FROM unnest(ARRAY['open', 'gone', 'closed']) AS state`,
    [partner.id],
  );
  const counts = { tripped: 2, reversalsParked: 2, reversalsPending: 1, settlementsWaiting: 3 };
  expect(await postgresCurrentCounts(bench.homes).counts()).toMatchObject(counts);
});
