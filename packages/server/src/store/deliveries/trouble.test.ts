import { afterAll, beforeEach, expect, test } from "vitest";
import { type NotificationId, newId, type PartnerId } from "../../ids.ts";
import { insertNotification, openBench, registerPartner } from "../notifications/notifications.fixture.ts";
import { PostgresTrouble } from "./trouble.ts";

const bench = await openBench();
const trouble = new PostgresTrouble(bench.homes);
const minuteMs = 60_000;
const nowMs = Date.now();
const at = (minutes: number) => new Date(nowMs + minutes * minuteMs);
beforeEach(() => bench.pool.query("TRUNCATE notifications, pending, parked, attempts, endpoints, partners CASCADE"));
afterAll(() => bench.close());

async function partner(state: "active" | "paused" = "active"): Promise<PartnerId> {
  const { id } = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
  const changed = "UPDATE partners SET state = $2, registered_origin = 'https://partner.example' WHERE id = $1";
  await bench.pool.query(changed, [id, state]);
  return id;
}

/** Minutes from now. */
interface Waiting {
  readonly startedAt: number;
  readonly dueAt?: number;
  readonly attemptsMade?: number;
  readonly round?: number;
}

async function waiting(partnerId: PartnerId, { startedAt, dueAt = 0, attemptsMade = 0, round = 0 }: Waiting) {
  const id = await insertNotification(bench.pool, partnerId, { state: "pending", round });
  const changed = "UPDATE pending SET schedule_start = $2, due_at = $3, attempts_made = $4 WHERE id = $1";
  await bench.pool.query(changed, [id, at(startedAt), at(dueAt), attemptsMade]);
  return id;
}

async function parked(partnerId: PartnerId, parkedAt: number) {
  const id = await insertNotification(bench.pool, partnerId, { state: "parked" });
  await bench.pool.query("UPDATE parked SET parked_at = $2 WHERE id = $1", [id, at(parkedAt)]);
  return id;
}

let attemptNo = 0;

async function attempted(partnerId: PartnerId, id: NotificationId, startedAt: number, more: object = {}) {
  const { reason = null, round = 0 } = more as { reason?: string; round?: number };
  attemptNo += 1;
  await bench.pool.query(
    `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url, reason)
     VALUES ($1, $2, $3, $4, $5, $6, 5, 'https://partner.example/ipn', $7)`,
    [partnerId, id, round, attemptNo, newId(), at(startedAt), reason],
  );
}

/** Of the registered URL, or of its host; or of a host that only a command named. */
const endpoint = (
  partnerId: PartnerId,
  state: "closed" | "open" | "gone",
  openedAt: number,
  target = "https://partner.example",
) =>
  bench.pool.query(
    `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, opened_at)
     SELECT a.id, $2, 'origin', $3, CASE WHEN $4 = 'gone'
       THEN $3 || ' ' || encode(sha256(convert_to(a.settings ->> 'callBackUrl', 'UTF8')), 'hex') ELSE $3 END, $4, $5
     FROM partners a WHERE a.id = $1`,
    [partnerId, newId(), target, state, at(openedAt)],
  );

const untried = { dueMs: null, sinceMs: null, openedMs: null };

test("a partner is in trouble by its oldest that failed, and the one whose schedule began first is at the head", async () => {
  const failing = await partner();
  await waiting(failing, { startedAt: -50, dueAt: 1 });
  const failed = await waiting(failing, { startedAt: -20, dueAt: 10, attemptsMade: 2, round: 1 });
  await attempted(failing, failed, -60, { reason: "status" });
  await attempted(failing, failed, -15, { reason: "status", round: 1 });
  await attempted(failing, failed, -14, { reason: "status", round: 1 });
  const newer = await waiting(failing, { startedAt: -40, dueAt: 5, attemptsMade: 1 });
  await attempted(failing, newer, -30, { reason: "timeout" });
  await endpoint(failing, "closed", -90, "https://once.example");
  await endpoint(failing, "open", -11);
  await endpoint(failing, "gone", -12);
  const ofFailing = {
    partnerId: failing,
    id: failed,
    waiting: 3,
    dueMs: at(5).getTime(),
    scheduleStartMs: at(-50).getTime(),
    sinceMs: at(-15).getTime(),
    openedMs: at(-12).getTime(),
  };

  const tripped = await partner();
  const head = await waiting(tripped, { startedAt: -70 });
  await waiting(tripped, { startedAt: -71 });
  await endpoint(tripped, "open", -3);
  const scheduleStartMs = at(-71).getTime();
  const openedMs = at(-3).getTime();
  const ofTripped = { ...untried, partnerId: tripped, id: head, waiting: 2, scheduleStartMs, openedMs };

  const paused = await partner("paused");
  const held = await waiting(paused, { startedAt: -60 });
  const ofPaused = { ...untried, partnerId: paused, id: held, waiting: 1, scheduleStartMs: at(-60).getTime() };

  const healthy = await partner();
  await waiting(healthy, { startedAt: -80 });
  await endpoint(healthy, "closed", -90);
  // Nothing waits for these, so nothing probes them: a host that one command named, and a URL that was registered before.
  await endpoint(healthy, "open", -90, "https://once.example");
  await endpoint(healthy, "gone", -90, "https://before.example");
  await endpoint(await partner(), "open", -90);
  await partner("paused");

  expect(await trouble.all(50)).toEqual([ofTripped, ofPaused, ofFailing]);
  expect(await trouble.all(2)).toEqual([ofTripped, ofPaused]);
  expect(await trouble.of(failing)).toEqual(ofFailing);
  expect(await trouble.of(paused)).toEqual(ofPaused);
  expect(await trouble.of(healthy)).toBeUndefined();
});

test("what is parked is trouble until the partner accepts something that was sent later; those in trouble come first", async () => {
  const mended = await partner();
  const older = await insertNotification(bench.pool, mended);
  const newestOfMended = await parked(mended, -30);
  const sent = await insertNotification(bench.pool, mended);
  await attempted(mended, older, -8);
  await attempted(mended, sent, -1, { reason: "status" });
  await attempted(mended, sent, -5);
  const ofMended = { partnerId: mended, id: newestOfMended, parked: 1, acceptedMs: at(-5).getTime() };

  // Of two the last counts, although it is the older notification.
  const stuck = await partner();
  await parked(stuck, -10);
  const newestOfStuck = await parked(stuck, -20);
  await attempted(stuck, newestOfStuck, -15);
  await attempted(stuck, newestOfStuck, -5, { reason: "status" });
  const ofStuck = { partnerId: stuck, id: newestOfStuck, parked: 2, acceptedMs: null };

  const silent = await partner();
  const ofSilent = { partnerId: silent, id: await parked(silent, -40), parked: 1, acceptedMs: null };
  await waiting(await partner(), { startedAt: -80, attemptsMade: 3 });

  // Mended, and parked last.
  const task = await partner();
  const last = await parked(task, -2);
  await attempted(task, last, -1);
  const ofTask = { partnerId: task, id: last, parked: 1, acceptedMs: at(-1).getTime() };

  expect(await trouble.parked(50)).toEqual([ofSilent, ofStuck, ofTask, ofMended]);
  expect(await trouble.parked(2)).toEqual([ofSilent, ofStuck]);
  expect(await trouble.parkedOf(stuck)).toEqual(ofStuck);
  expect(await trouble.parkedOf(mended)).toEqual(ofMended);
  expect(await trouble.parkedOf(await partner())).toBeUndefined();
});
