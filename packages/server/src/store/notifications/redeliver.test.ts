import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { idTimeMs, lowestId, type NotificationId, newId, type PartnerId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import { sampleFacts } from "../rows.fixture.ts";
import { dayMs, dayOf } from "../schema/partitions.ts";
import { idAt, insertAttempt, insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";

let partner: Partner;

const bench = await openBench();

beforeEach(async () => {
  await bench.pool.query(
    "TRUNCATE notifications, attempts, pending, parked, transactions, redeliveries, partners CASCADE",
  );
  partner = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
  bench.told.length = 0;
});

afterAll(() => bench.close());

const redeliver = (id: string, to: "original" | "registered" = "original", of = partner) =>
  bench.notifications.redeliver(of.id, id, to);
const codeOf = (call: Promise<unknown>) =>
  call.then(
    () => "no error",
    (error: { code?: unknown }) => error.code,
  );

async function contentOf(id: string): Promise<string | undefined> {
  const text = "SELECT content::text FROM notifications WHERE id = $1";
  return (await bench.pool.query<{ content: string }>(text, [id])).rows[0]?.content;
}

async function places(id: NotificationId): Promise<{ pending: number; parked: number }> {
  const { rows } = await bench.pool.query<{ pending: number; parked: number }>(
    `SELECT (SELECT count(*)::int FROM pending WHERE id = $1) AS pending,
       (SELECT count(*)::int FROM parked WHERE id = $1) AS parked`,
    [id],
  );
  return rows[0] ?? { pending: -1, parked: -1 };
}

/** Pending rows, as their shard's owner reads them. */
async function pendingNow(): Promise<Record<string, unknown>[]> {
  const { rows } = await bench.pool.query(
    `SELECT id, queue, round, attempts_made, to_registered, due_at <= now() AS is_due, schedule_start, bytes
     FROM pending ORDER BY id`,
  );
  return rows;
}

describe("a redelivery", () => {
  test("needs no partner's name where the id is known", async () => {
    const other = await registerPartner(bench.pool);
    const id = await insertNotification(bench.pool, other.id, { state: "parked" });
    expect(await bench.notifications.redeliver(undefined, id, "original")).toMatchObject({
      id,
      partnerId: other.id,
      state: "pending",
    });
    expect(bench.told).toEqual([other.id]);
    expect(await bench.notifications.redeliver(undefined, id, "original")).toMatchObject({
      state: "pending",
      held: null,
    });
    for (const unknown of [newId(), "x"]) {
      expect(await codeOf(bench.notifications.redeliver(undefined, unknown, "original"))).toBe("not_found");
    }
    expect(await codeOf(redeliver(id))).toBe("not_found");
  });

  test.each(["accepted", "parked"] as const)(
    "makes an %s notification due at once, with a whole schedule",
    async (state) => {
      const id = await insertNotification(bench.pool, partner.id, { state, round: 2 });
      for (const attemptNo of [1, 2, 3]) {
        await insertAttempt(bench.pool, partner.id, id, { round: 2, attemptNo, reason: "timeout" });
      }
      const before = Date.now();
      expect(await redeliver(id)).toMatchObject({ id, state: "pending", attemptsMade: 3, lastReason: "timeout" });
      expect(await places(id)).toEqual({ pending: 1, parked: 0 });
      expect(bench.told).toEqual([partner.id]);
      const [row] = await pendingNow();
      expect(row).toMatchObject({ id, round: 3, attempts_made: 0, to_registered: false, queue: "", is_due: true });
      expect(Number(row?.["schedule_start"])).toBeGreaterThan(before - 1_000);
    },
  );

  test("goes to the registered URL when that is asked for", async () => {
    const id = await insertNotification(bench.pool, partner.id, { callBackUrl: "https://partner.example/old" });
    await redeliver(id, "registered");
    expect(await pendingNow()).toMatchObject([{ id, to_registered: true, queue: "" }]);
    // It is sent now, in the round that was asked for.
    await redeliver(id, "original");
    expect(await pendingNow()).toMatchObject([{ id, to_registered: true, queue: "" }]);
  });

  test("to the registered URL takes a pending one out of the queue of its own, whose endpoint accepts nothing", async () => {
    const own = { callBackUrl: "https://own.example/ipn", state: "pending" } as const;
    const ids = [await insertNotification(bench.pool, partner.id, own)];
    ids.push(await insertNotification(bench.pool, partner.id, { ...own, command: "VOID" }));
    await bench.pool.query("UPDATE pending SET queue = 'https://own.example', attempts_made = 1");
    await bench.pool.query("UPDATE partners SET registered_routes = $1", [{ VOID: { queue: "VOID", origin: "" } }]);
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, failures, probes, probe_at, epoch, control_no)
       VALUES ($1, gen_random_uuid(), 'origin', $2, $2, 'open', 5, 3, now() + interval '5 minutes', 1, 0)`,
      [partner.id, "https://own.example"],
    );
    await bench.notifications.redeliverMany({ ids }, { to: "original" });
    expect(await pendingNow()).toMatchObject([{ queue: "https://own.example" }, { queue: "https://own.example" }]);
    await bench.notifications.redeliverMany({ ids }, { to: "registered" });
    expect(await pendingNow()).toMatchObject([
      { id: ids[0], to_registered: true, queue: "" },
      { id: ids[1], to_registered: true, queue: "VOID" },
    ]);
    expect((await bench.notifications.find(String(ids[0])))?.waiting).toMatchObject({ because: "turn" });
  });

  test.each(["https://Own.example:443/ipn", "https://bún.example?chả", "https://0x7f.1/ipn", "http://own.example:80"])(
    "to %s waits in the queue of that URL, as it did before",
    async (callBackUrl) => {
      const id = await insertNotification(bench.pool, partner.id, { callBackUrl });
      await redeliver(id);
      expect(await pendingNow()).toMatchObject([{ id, to_registered: false, queue: new URL(callBackUrl).origin }]);
    },
  );

  test("with a URL that cannot be parsed waits with those of the registered URL, and does not keep others back", async () => {
    const spoilt = await insertNotification(bench.pool, partner.id, { callBackUrl: "partner.example/ipn" });
    const other = await insertNotification(bench.pool, partner.id, { callBackUrl: "https://own.example/ipn" });
    await bench.notifications.redeliverMany({ ids: [spoilt, other] }, { to: "original" });
    expect(await pendingNow()).toMatchObject([
      { id: spoilt, to_registered: false, queue: "" },
      { id: other, to_registered: false, queue: "https://own.example" },
    ]);
  });

  test("of a parked one goes on counting its rounds when its attempts are no longer there", async () => {
    const id = await insertNotification(bench.pool, partner.id, { state: "parked", round: 5_000 });
    await redeliver(id);
    expect(await pendingNow()).toMatchObject([{ id, round: 5_001 }]);
  });

  test("is refused if the notification is unknown, or another partner's", async () => {
    const accepted = await insertNotification(bench.pool, partner.id);
    const other = await registerPartner(bench.pool);
    expect(await codeOf(redeliver(newId()))).toBe("not_found");
    expect(await codeOf(redeliver("7"))).toBe("not_found");
    expect(await codeOf(redeliver(accepted, "original", other))).toBe("not_found");
    expect(bench.told).toEqual([]);
  });

  test("asked for many times at once is made once", async () => {
    const id = await insertNotification(bench.pool, partner.id, { state: "parked" });
    const before = (await bench.store.statuses([{ partnerId: partner.id, id }])).length;
    await Promise.all(Array.from({ length: 5 }, () => redeliver(id)));
    expect(await places(id)).toEqual({ pending: 1, parked: 0 });
    expect(await pendingNow()).toMatchObject([{ round: before, attempts_made: 0 }]);
  });

  test("of a pending one makes it due now in its round; the schedule does not count what was asked for", async () => {
    const id = await insertNotification(bench.pool, partner.id, { state: "pending", round: 2 });
    const asked = async () =>
      (await bench.pool.query("SELECT asked, is_asked, requests FROM pending WHERE id = $1", [id])).rows;
    await bench.pool.query("UPDATE pending SET due_at = now() + interval '1 day'");
    expect(await redeliver(id)).toMatchObject({ state: "pending", held: null });
    expect(await pendingNow()).toMatchObject([{ round: 2, attempts_made: 0, is_due: true }]);
    // Its first attempt is a step of the schedule, although a person asked for it.
    expect(await asked()).toEqual([{ asked: 0, is_asked: false, requests: 1 }]);
    await bench.pool.query("UPDATE pending SET attempts_made = 4, due_at = now() + interval '1 day'");
    for (let click = 0; click < 12; click += 1) await redeliver(id);
    expect(await asked()).toEqual([{ asked: 0, is_asked: true, requests: 13 }]);
    expect(await pendingNow()).toMatchObject([{ round: 2, attempts_made: 4, is_due: true }]);
    expect(bench.told).toHaveLength(13);
    // One that is late already stays before those that became due since.
    await bench.pool.query("UPDATE pending SET due_at = now() - interval '1 day'");
    await redeliver(id);
    const late = "SELECT FROM pending WHERE due_at < now() - interval '1 hour'";
    expect((await bench.pool.query(late)).rowCount).toBe(1);
  });

  test.each(["pending", "parked"] as const)("of a %s one probes its partner's tripped circuit now", async (state) => {
    const id = await insertNotification(bench.pool, partner.id, { state });
    const other = newId<"partner">();
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, failures, probes, probe_at, epoch, control_no)
       SELECT p, gen_random_uuid(), 'origin', 'https://partner.example', 'https://partner.example', 'open', 5, 3,
         now() + interval '5 minutes', 1, 0 FROM unnest($1::uuid[]) AS p`,
      [[partner.id, other]],
    );
    await redeliver(id);
    const text = "SELECT probe_at <= now() AS is_due, control_no, probes FROM endpoints WHERE partner_id = $1";
    expect((await bench.pool.query(text, [partner.id])).rows).toEqual([{ is_due: true, control_no: 1, probes: 3 }]);
    expect((await bench.pool.query(text, [other])).rows).toEqual([{ is_due: false, control_no: 0, probes: 3 }]);
    await bench.pool.query("UPDATE partners SET state = 'paused' WHERE id = $1", [partner.id]);
    expect(await redeliver(id)).toMatchObject({ held: "paused" });

    await bench.pool.query("UPDATE partners SET state = 'active' WHERE id = $1", [partner.id]);
    const void_ = await insertNotification(bench.pool, partner.id, { state: "pending" });
    await bench.pool.query("UPDATE pending SET follows = true, chain_id = $2 WHERE id = $1", [void_, id]);
    expect(await redeliver(void_)).toMatchObject({ held: "order", waiting: { because: "order", after: id } });
  });

  test("waits for an outcome that is being written, and never leaves a notification in two places", async () => {
    const id = await insertNotification(bench.pool, partner.id, { state: "pending" });
    const client = await bench.pool.connect();
    await client.query("BEGIN");
    await client.query("DELETE FROM pending WHERE id = $1", [id]);
    await client.query(
      `INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
       VALUES ($1, $2, $2, 3, 2, 100, 'timeout')`,
      [partner.id, id],
    );
    const redelivered = redeliver(id);
    await lockWaits(bench.pool);
    await client.query("COMMIT");
    client.release();
    expect(await redelivered).toMatchObject({ state: "pending" });
    expect(await places(id)).toEqual({ pending: 1, parked: 0 });
  });

  test("of one that outlived its day of history brings the day back, and the content byte for byte", async () => {
    const day = dayOf(Date.now()) - 120 * dayMs;
    await bench.partitions.ensureDays([day]);
    const content = JSON.stringify(sampleFacts({ cardHolder: "Ngô  Bảo" })).replace('{"kind"', '{ "kind"');
    const id = await insertNotification(bench.pool, partner.id, { id: idAt(day + 1), state: "parked", content });
    await bench.pool.query("UPDATE notifications SET original_external_id = 'X-1' WHERE id = $1", [id]);
    const asStored = "SELECT xid::text, created_at, original_external_id FROM notifications WHERE id = $1";
    const { rows } = await bench.pool.query(asStored, [id]);
    await bench.partitions.maintain();
    expect((await bench.pool.query("SELECT FROM notifications WHERE id = $1", [id])).rowCount).toBe(0);

    expect(await redeliver(id)).toMatchObject({ id, state: "pending" });
    const back = await bench.pool.query(asStored, [id]);
    expect(back.rows).toEqual(rows);
    expect(await bench.partitions.maintain()).toMatchObject({
      dropped: 0,
      waiting: [{ why: "a delivery is under way" }],
    });
    expect(await contentOf(id)).toBe(content);
    await bench.pool.query("DELETE FROM pending WHERE id = $1", [id]);
    await insertAttempt(bench.pool, partner.id, id, { round: 1, attemptNo: 1 });
    expect(await bench.notifications.find(id)).toMatchObject({ state: "accepted", attempts: [{ attemptNo: 1 }] });
    expect(await bench.partitions.maintain()).toMatchObject({ dropped: 1, waiting: [] });
    expect(await bench.notifications.find(id)).toBeUndefined();
  });
});

describe("a redelivery of many", () => {
  async function insertParkedMany(count: number, reason: string): Promise<void> {
    await bench.pool.query(
      `WITH made AS (
         INSERT INTO notifications (partner_id, id, chain_id, command, content)
         SELECT $1, (left($2, 18) || '-8' || lpad(to_hex(i), 3, '0') || right($2, 13))::uuid, $1, 'SALE', '{}'
         FROM generate_series(1, $3::int) AS i RETURNING partner_id, id)
       INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
       SELECT partner_id, id, partner_id, 1, 1, 2, $4 FROM made`,
      [partner.id, newId(), count, reason],
    );
  }

  test("takes all that are parked, in batches, and only counts them in a dry run", async () => {
    await insertParkedMany(1_203, "timeout");
    const accepted = await insertNotification(bench.pool, partner.id);
    const dry = await bench.notifications.redeliverMany({}, { to: "original", dryRun: true });
    expect(dry).toMatchObject({ matched: 1_203, redelivered: 0 });
    expect(dry.ids).toHaveLength(100);
    expect(dry.ids).toEqual(dry.ids.toSorted());
    expect(await bench.notifications.redeliverMany({}, { to: "registered" })).toEqual({
      ...dry,
      id: expect.any(String),
      redelivered: 1_203,
    });
    const { rows } = await bench.pool.query("SELECT count(*)::int AS n, bool_and(to_registered) AS r FROM pending");
    expect(rows).toEqual([{ n: 1_203, r: true }]);
    expect(await places(accepted)).toEqual({ pending: 0, parked: 0 });
    expect(await bench.notifications.redeliverMany({}, { to: "original" })).toMatchObject({ matched: 0 });
  });

  test("tells a dry run what it selects, and is bounded over all partners, whose pause holds it", async () => {
    const other = await registerPartner(bench.pool);
    const [today, url] = [dayOf(Date.now()), "https://own.example/ipn"];
    await bench.partitions.ensureDays([today - 4 * dayMs]);
    const oldest = await insertNotification(bench.pool, partner.id, { id: idAt(today - 4 * dayMs), state: "parked" });
    const own = { state: "parked", callBackUrl: url, command: "VOID" } as const;
    for (const id of [partner.id, other.id, other.id]) await insertNotification(bench.pool, id, own);
    const { rows } = await bench.pool.query("SELECT created_at FROM notifications WHERE id = $1", [oldest]);
    const oldestAt = rows[0].created_at.toISOString();
    const all = { oldestAt, commands: { SALE: 1, VOID: 3 }, urls: [null, url] };
    const dry = (to: "original" | "registered") => bench.notifications.redeliverMany({}, { to, dryRun: true });
    expect(await dry("original")).toMatchObject({ matched: 4, selection: all });
    expect(await dry("registered")).toMatchObject({ matched: 4, selection: { ...all, urls: [null] } });
    await bench.pool.query("UPDATE partners SET state = 'paused'");
    const bounded = await bench.notifications.redeliverMany({}, { to: "original", limit: 3 });
    expect(bounded).toMatchObject({ matched: 3, redelivered: 3, held: { paused: 3, order: 0 } });
  });

  test.each(["pending", "parked"] as const)("of %s ones leaves one that was accepted since", async (state) => {
    const id = await insertNotification(bench.pool, partner.id, { state });
    const client = await bench.pool.connect();
    await client.query("BEGIN");
    await client.query(`DELETE FROM ${state} WHERE id = $1`, [id]);
    const redelivered = bench.notifications.redeliverMany({ state }, { to: "original" });
    await lockWaits(bench.pool);
    await client.query("COMMIT");
    client.release();
    expect(await redelivered).toMatchObject({ id: null, matched: 1, redelivered: 0 });
    expect(await places(id)).toEqual({ pending: 0, parked: 0 });
  });

  test("takes accepted ones of many days", async () => {
    const today = dayOf(Date.now());
    const ids = [8, 5, 3, 0].map((days) => idAt(today - days * dayMs));
    await bench.partitions.ensureDays(ids.map((id) => idTimeMs(id)));
    for (const id of ids) await insertNotification(bench.pool, partner.id, { id });
    const filter = { state: "accepted", from: new Date(today - 9 * dayMs).toISOString() } as const;
    expect((await bench.notifications.redeliverMany(filter, { to: "original" })).ids).toEqual(ids);
  });

  test("is known for thirty days, and counts each once, as failed only after an attempt since", async () => {
    const other = await registerPartner(bench.pool);
    const daysAgo = (days: number) => lowestId(Date.now() - days * dayMs);
    const kept = [
      [partner.id, daysAgo(29)],
      [other.id, daysAgo(31)],
    ];
    for (const [partnerId, id] of [...kept, [partner.id, daysAgo(31)]]) {
      const text = "INSERT INTO redeliveries (partner_id, id, step, ids) VALUES ($1, $2, $3, '{}')";
      await bench.pool.query(text, [partnerId, id, newId()]);
    }
    const one = await insertNotification(bench.pool, partner.id, { state: "pending" });
    await bench.pool.query("UPDATE pending SET attempts_made = 2");
    const again = (redelivery?: string) =>
      bench.notifications.redeliverMany({ ids: [one] }, { to: "original", redelivery });
    const { id } = await again();
    await again(id ?? "");
    const { rows } = await bench.pool.query("SELECT DISTINCT partner_id, id FROM redeliveries WHERE id <> $1", [id]);
    expect(rows.map((row) => [row.partner_id, row.id]).toSorted()).toEqual(kept.toSorted());
    const progress = () => bench.notifications.redelivery(id ?? "");
    expect(await progress()).toMatchObject({ redelivered: 1, pending: 1, failed: 0 });
    await bench.pool.query("UPDATE pending SET attempts_made = 3, is_asked = false");
    expect(await progress()).toMatchObject({ redelivered: 1, pending: 1, failed: 1 });
  });

  test("takes what the filter names: partner, reason, time", async () => {
    const other = await registerPartner(bench.pool);
    await insertParkedMany(3, "tls");
    const byOther = await insertNotification(bench.pool, other.id, { state: "parked" });
    const matched = async (filter: object) =>
      (await bench.notifications.redeliverMany(filter, { to: "original", dryRun: true })).matched;
    expect(await matched({})).toBe(4);
    expect(await matched({ reason: "tls" })).toBe(3);
    expect(await matched({ partnerId: other.id })).toBe(1);
    expect(await matched({ partnerId: other.id, reason: "tls" })).toBe(0);
    expect(await matched({ from: new Date(Date.now() + 60_000).toISOString() })).toBe(0);
    expect(await matched({ to: new Date(Date.now() + 60_000).toISOString() })).toBe(4);
    await bench.notifications.redeliverMany({ partnerId: other.id }, { to: "original" });
    expect(await places(byOther)).toEqual({ pending: 1, parked: 0 });
    expect(bench.told).toEqual([other.id]);
    expect(await bench.notifications.backlog(other.id)).toMatchObject({ pending: 1, parked: 0 });
    const nothing = { pending: 0, oldestPendingAt: null };
    expect(await bench.notifications.backlog(partner.id)).toMatchObject({ ...nothing, parked: 3 });
  });

  test("takes those that are named, of every partner and in every state, and none by anything else", async () => {
    const other = await registerPartner(bench.pool);
    const accepted = await insertNotification(bench.pool, partner.id);
    const pending = await insertNotification(bench.pool, other.id, { state: "pending" });
    const parked = await insertNotification(bench.pool, other.id, { state: "parked" });
    await insertNotification(bench.pool, other.id, { state: "parked" });
    const ids = [parked, accepted, newId<"notification">(), pending, parked];
    const dry = await bench.notifications.redeliverMany({ ids }, { to: "original", dryRun: true });
    expect([dry.matched, dry.ids.toSorted()]).toEqual([3, [accepted, pending, parked].toSorted()]);
    const own = { ids, partnerId: partner.id };
    expect(await bench.notifications.redeliverMany(own, { to: "original" })).toMatchObject({ ids: [accepted] });
    const rest = await bench.notifications.redeliverMany({ ids, state: "parked" }, { to: "original" });
    expect(rest.ids).toEqual([parked]);
    expect([await places(accepted), await places(parked)]).toEqual(Array(2).fill({ pending: 1, parked: 0 }));
    const from = new Date().toISOString();
    const refused = bench.notifications.redeliverMany({ ids, from, reason: "tls" }, { to: "original" });
    await expect(refused).rejects.toMatchObject({ fields: [{ field: "filter.from" }, { field: "filter.reason" }] });
  });

  test("takes accepted ones since a time, and leaves those on their way alone", async () => {
    const accepted = await insertNotification(bench.pool, partner.id);
    const pending = await insertNotification(bench.pool, partner.id, { state: "pending", round: 3 });
    const parked = await insertNotification(bench.pool, partner.id, { state: "parked" });
    const from = new Date(Date.now() - 60_000).toISOString();
    const result = await bench.notifications.redeliverMany({ state: "accepted", from }, { to: "original" });
    expect(result).toMatchObject({ matched: 1, redelivered: 1, ids: [accepted] });
    expect(await places(accepted)).toEqual({ pending: 1, parked: 0 });
    expect(await places(parked)).toEqual({ pending: 0, parked: 1 });
    const { rows } = await bench.pool.query("SELECT round FROM pending WHERE id = $1", [pending]);
    expect(rows).toEqual([{ round: 3 }]);
  });

  test("counts what became of it: delivered, parked again, pending, and what still holds that back", async () => {
    const other = await registerPartner(bench.pool);
    await insertParkedMany(4, "timeout");
    const first = await insertNotification(bench.pool, other.id, { state: "pending" });
    const second = await insertNotification(bench.pool, other.id, { state: "pending" });
    await bench.pool.query("UPDATE pending SET schedule_start = now() - interval '1 minute' WHERE id = $1", [first]);
    await bench.pool.query("UPDATE pending SET follows = true, chain_id = $2 WHERE id = $1", [second, first]);
    const many = (filter: object, redelivery?: string | null) =>
      bench.notifications.redeliverMany(filter, { to: "original", redelivery: redelivery ?? undefined, limit: 2 });

    const step = await many({});
    expect(step).toMatchObject({ redelivered: 2, held: { paused: 0, order: 0 } });
    expect(await many({}, step.id)).toMatchObject({ id: step.id, redelivered: 2 });
    expect(await many({ state: "pending", partnerId: other.id }, step.id)).toMatchObject({
      redelivered: 2,
      held: { paused: 0, order: 1 },
    });
    const id = step.id ?? "";
    const progress = (of?: PartnerId) => bench.notifications.redelivery(id, of);
    expect(await progress()).toMatchObject({ redelivered: 6, delivered: 0, pending: 6, held: { paused: 0, order: 1 } });

    const [one, two] = (await pendingNow()).filter((row) => row["id"] !== first && row["id"] !== second);
    await bench.pool.query("DELETE FROM pending WHERE id = ANY ($1)", [[one?.["id"], two?.["id"], first]]);
    await bench.pool.query(
      `INSERT INTO parked (partner_id, id, chain_id, round, attempts_made, bytes, reason)
       VALUES ($1, $2, $2, 9, 2, 100, 'timeout')`,
      [partner.id, two?.["id"]],
    );
    await bench.pool.query("UPDATE partners SET state = 'paused' WHERE id = $1", [partner.id]);
    expect(await progress()).toMatchObject({
      ...{ redelivered: 6, delivered: 2, parked: 1, pending: 3, held: { paused: 2, order: 0 } },
      createdAt: expect.stringMatching(/Z$/),
    });
    expect(await progress(other.id)).toMatchObject({ redelivered: 2, delivered: 1, pending: 1 });
    expect(await progress(partner.id)).toMatchObject({ redelivered: 4, delivered: 1, parked: 1, pending: 2 });
    const stranger = await registerPartner(bench.pool);
    expect(await codeOf(progress(stranger.id))).toBe("not_found");
    expect(await codeOf(bench.notifications.redelivery("x"))).toBe("not_found");
  });

  test("counts those that are sent now, and says when the next of the others is tried", async () => {
    await insertParkedMany(2, "timeout");
    const { id } = await bench.notifications.redeliverMany({}, { to: "original" });
    const progress = () => bench.notifications.redelivery(id ?? "");
    expect(await progress()).toMatchObject({ pending: 2, due: 2, nextAttemptAt: null });

    const [first, second] = (await pendingNow()).map((row) => String(row["id"]));
    const [soon, later] = ["2121-01-01T00:00:00.000Z", "2122-01-01T00:00:00.000Z"];
    const tried = "UPDATE pending SET attempts_made = 1, due_at = $2 WHERE id = $1";
    await bench.pool.query(tried, [first, later]);
    expect(await progress()).toMatchObject({ pending: 2, failed: 1, due: 1, nextAttemptAt: later });
    await bench.pool.query(tried, [second, soon]);
    expect(await progress()).toMatchObject({ failed: 2, due: 0, nextAttemptAt: soon });

    const endpoint = newId();
    await bench.pool.query("UPDATE pending SET due_at = now(), attempts_made = 0, queue = 'https://partner.example'");
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, probe_at)
       VALUES ($1, $2, 'origin', 'https://partner.example', 'https://partner.example', 'open', $3)`,
      [partner.id, endpoint, later],
    );
    expect(await progress()).toMatchObject({ failed: 0, due: 0, nextAttemptAt: later });
    await bench.pool.query("UPDATE endpoints SET state = 'gone' WHERE id = $1", [endpoint]);
    expect(await progress()).toMatchObject({ due: 0, nextAttemptAt: null });
    await bench.pool.query("UPDATE endpoints SET state = 'closed' WHERE id = $1", [endpoint]);
    expect(await progress()).toMatchObject({ due: 2, nextAttemptAt: null });
    await bench.pool.query("UPDATE partners SET state = 'paused'");
    expect(await progress()).toMatchObject({ due: 0, nextAttemptAt: null, held: { paused: 2 } });
  });

  test("names every part of a filter that cannot be", async () => {
    const refused = bench.notifications.redeliverMany(
      { state: "accepted", reason: "tls" },
      { to: "original", dryRun: true },
    );
    await expect(refused).rejects.toMatchObject({
      code: "invalid_request",
      fields: [
        { field: "filter.from", code: "missing_field" },
        { field: "filter.reason", code: "invalid_value" },
      ],
    });
  });

  test("takes pending ones, which are due now in their round", async () => {
    const pending = await insertNotification(bench.pool, partner.id, { state: "pending", round: 3 });
    await insertNotification(bench.pool, partner.id, { state: "parked" });
    await bench.pool.query("UPDATE pending SET due_at = now() + interval '1 day'");
    const result = await bench.notifications.redeliverMany({ state: "pending" }, { to: "original" });
    expect(result).toMatchObject({ matched: 1, redelivered: 1, ids: [pending] });
    expect(await pendingNow()).toMatchObject([{ id: pending, round: 3, is_due: true }]);
  });
});

describe("a test notification", () => {
  test("is due like any other, and says everywhere that it is a test", async () => {
    const summary = await bench.notifications.sendTest(partner);
    expect(summary).toMatchObject({
      transactionId: null,
      command: "SALE",
      kind: "card",
      state: "pending",
      attemptsMade: 0,
    });
    expect(bench.told).toEqual([partner.id]);
    const content = await contentOf(summary.id);
    const bytes = Buffer.byteLength(content ?? "");
    expect(await pendingNow()).toMatchObject([{ id: summary.id, round: 0, queue: "", is_due: true, bytes }]);
    const { fields } = JSON.parse(content ?? "{}");
    expect(fields).toMatchObject({ status: "SUCCESS", isoResponseCode: "00", amount: "1", currency: "VND" });
    expect(fields.merchantTransId).toBe(`TEST-${fields.id}`);
    expect(fields.reqId).toMatch(/^[0-9a-f-]{14}4[0-9a-f-]{21}$/);
    expect(JSON.parse(fields.extraData)).toMatchObject({ test: true });
  });

  test("needs a registered callback URL", async () => {
    const unreachable = await registerPartner(bench.pool);
    expect(await codeOf(bench.notifications.sendTest(unreachable))).toBe("no_callback_url");
    expect((await bench.pool.query("SELECT FROM notifications")).rowCount).toBe(0);
  });
});
