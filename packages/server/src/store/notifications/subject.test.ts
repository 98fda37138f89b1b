import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { idTimeMs, lowestId, type NotificationId, newId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import { idAt, insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";

let partner: Partner;
const bench = await openBench();
beforeEach(async () => {
  await bench.pool.query(
    "TRUNCATE notifications, attempts, pending, parked, transactions, endpoints, partners CASCADE",
  );
  partner = await registerPartner(bench.pool, { callBackUrl: "https://partner.example/ipn" });
  await bench.pool.query("UPDATE partners SET registered_origin = 'https://partner.example:443'");
});
afterAll(() => bench.close());

function withFields(fields: Readonly<Record<string, string>>): Promise<NotificationId> {
  const content = JSON.stringify({ kind: "card", command: "SALE", fields });
  return insertNotification(bench.pool, partner.id, { content });
}

const idsOf = async (search: Partial<Parameters<typeof bench.notifications.search>[0]>) =>
  (await bench.notifications.search({ limit: 50, ...search })).items.map((item) => item.id);

describe("a search by content", () => {
  test.each([
    ["tid", { tid: "T1" }, { tid: "T1" }],
    ["mid", { mid: "M1" }, { mid: "M1" }],
    ["refId", { refId: "847200567102" }, { refId: "847200567102" }],
    ["approveCode", { approveCode: "A1B2C3" }, { approveCode: "A1B2C3" }],
    ["billId", { billId: "B-7" }, { billId: "B-7" }],
    ["a card's last four digits", { cardNumber: "411111******1007" }, { lastFour: "1007" }],
    ["an approval", { isoResponseCode: "00" }, { result: "approved" as const }],
    ["a decline", { isoResponseCode: "51" }, { result: "declined" as const }],
    ["its amount", { amount: "12.50" }, { amountFrom: "12.5", amountTo: "12.50" }],
    ["the least amount", { amount: "150000" }, { amountFrom: "13" }],
    ["the total of a settlement", { totalAmount: "0" }, { amountTo: "0" }],
    ["a part of merchantTransId, in either case", { merchantTransId: "shop-Order-17-a" }, { contains: "order-17" }],
  ])("finds by %s what has it, and nothing else", async (_, fields, search) => {
    await withFields({ tid: "T2", mid: "M2", cardNumber: "411111******2222", merchantTransId: "another" });
    const id = await withFields(fields);
    await insertNotification(bench.pool, partner.id, { content: '{"kind":"card","fields":{}}' });
    expect(await idsOf(search)).toEqual([id]);
    expect(await idsOf({ ...search, command: "VOID" })).toEqual([]);
  });

  test("tells from where it goes on when it has looked at enough", async () => {
    const oldest = await withFields({ tid: "T1" });
    const first = lowestId(idTimeMs(oldest) + 1);
    await bench.pool.query(
      `INSERT INTO notifications (partner_id, id, chain_id, command, content)
       SELECT $1, (left($2, 14) || '7' || lpad(to_hex(i / 4096), 3, '0') || '-8' || lpad(to_hex(i % 4096), 3, '0')
         || right($2, 13))::uuid, $1, 'SALE', '{"kind":"card","fields":{}}'
       FROM generate_series(1, 10100) AS i`,
      [partner.id, first],
    );
    const search = { partnerId: partner.id, tid: "T1", limit: 50 };
    let page = await bench.notifications.search(search);
    expect(page.items).toEqual([]);
    while (page.items.length === 0) {
      expect(page.next).not.toBeNull();
      page = await bench.notifications.search({ ...search, after: page.next ?? "" });
    }
    expect(page.items.map(({ id }) => id)).toEqual([oldest]);
  });
});

test("a pending notification has its schedule: the coming attempts, and when it is parked", async () => {
  await bench.pool.query(`UPDATE partners SET settings = settings || '{"retry": [5, 30, 120]}'`);
  const id = await insertNotification(bench.pool, partner.id, { state: "pending" });
  const scheduleOf = async (more: string) => {
    await bench.pool.query(
      `UPDATE pending SET schedule_start = '2026-11-21T10:00:00Z', due_at = '2026-11-21T10:00:05Z', ${more}
       WHERE id = $1`,
      [id],
    );
    return (await bench.notifications.find(id))?.schedule;
  };
  const at = (time: string) => `2026-11-21T${time}.000Z`;
  const [beganAt, endsAt] = [at("10:00:00"), at("10:02:35")];
  const attempts = [at("10:00:05"), at("10:00:35"), endsAt];
  expect(await scheduleOf("attempts_made = 1")).toEqual({ beganAt, endsAt, attempts });
  // Three more that a person asked for, and the next one, too.
  expect(await scheduleOf("attempts_made = 4, asked = 3")).toEqual({ beganAt, endsAt, attempts });
  expect(await scheduleOf("attempts_made = 5, asked = 3, is_asked = true")).toEqual({ beganAt, endsAt, attempts });
  expect(await scheduleOf("attempts_made = 3, asked = 0, is_asked = false")).toEqual({
    beganAt,
    endsAt,
    attempts: [at("10:00:05"), endsAt],
  });
  await bench.pool.query("UPDATE partners SET state = 'paused'");
  expect((await bench.notifications.find(id))?.schedule).toBeNull();
});

describe("the reason for which a notification waits", () => {
  const insertPending = (more = "") =>
    insertNotification(bench.pool, partner.id, { state: "pending" }).then(async (id) => {
      if (more !== "") await bench.pool.query(`UPDATE pending SET ${more} WHERE id = $1`, [id]);
      return id;
    });
  /** Its reason to wait, and until when: the same alone and in a list. */
  const waitingOf = async (id: NotificationId) => {
    const found = await bench.notifications.find(id);
    const { items } = await bench.notifications.search({ limit: 10 });
    const listed = items.find((item) => item.id === id);
    expect(listed?.waiting).toEqual(found?.waiting);
    return { ...found?.waiting, nextAttemptAt: found?.nextAttemptAt };
  };

  test("is its turn while it is due", async () => {
    for (const more of ["", "attempts_made = 1"])
      expect(await waitingOf(await insertPending(more))).toMatchObject({ because: "turn" });
  });

  test("is the schedule after a failed attempt", async () => {
    const id = await insertPending("attempts_made = 1, due_at = now() + interval '1 minute'");
    expect(await waitingOf(id)).toMatchObject({ because: "retry", nextAttemptAt: expect.stringMatching(/Z$/) });
  });

  test("is a person while its partner is paused", async () => {
    const id = await insertPending();
    await bench.pool.query(
      "UPDATE partners SET state = 'paused', stopped_at = '2026-01-31T09:30:00Z', updated_at = now()",
    );
    const since = "2026-01-31T09:30:00.000Z";
    expect(await waitingOf(id)).toMatchObject({ because: "paused", since, nextAttemptAt: null });
  });

  test("is the earlier one of its chain", async () => {
    const first = await insertPending("schedule_start = now() - interval '1 minute'");
    const second = await insertPending(`follows = true, chain_id = '${first}'`);
    expect(await waitingOf(second)).toMatchObject({ because: "order", after: first });
    expect(await waitingOf(first)).toMatchObject({ because: "turn" });
  });

  test.each([
    ["open", "https://partner.example:443", "circuit"],
    ["gone", "https://partner.example:443 4f4d5f2a", "turn"],
  ])("with an endpoint that is %s at %s is %s", async (state, queue, because) => {
    const id = await insertPending();
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, target, queue, kind, state, last_reason, probe_at)
       VALUES ($1, $2, 'https://partner.example', $3, 'origin', $4, 'timeout', now() + interval '30 s')`,
      [partner.id, newId(), queue, state],
    );
    expect(await waitingOf(id)).toMatchObject({ because });
  });

  test.each([
    ["its registered URL", "", "https://partner.example/ipn"],
    ["the URL of its command", "SALE", "https://partner.example/sales"],
  ])("is a person while %s answered 410, although its origin is tripped", async (_, queue, url) => {
    const id = await insertPending(`queue = '${queue}'`);
    await bench.pool.query(
      `UPDATE partners SET settings = jsonb_set(settings, '{callBackUrlByCommand}', $1),
         registered_routes = '{"SALE": {"origin": "https://partner.example:443", "queue": "SALE"}}'`,
      [{ SALE: "https://partner.example/sales" }],
    );
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, target, queue, kind, state)
       VALUES ($1, $2, $4, 'https://partner.example:443 ' || encode(sha256(convert_to($4, 'UTF8')), 'hex'), 'url', 'gone'),
         ($1, $3, 'https://partner.example', 'https://partner.example:443', 'origin', 'open')`,
      [partner.id, newId(), newId(), url],
    );
    expect(await waitingOf(id)).toMatchObject({ because: "gone", nextAttemptAt: null });
  });
});

test("the use of keys is that of the partner's newest attempts, each by its outcome", async () => {
  const other = await registerPartner(bench.pool);
  const lastAcceptedAtMs = Date.now() - 6 * 86_400_000;
  const attempts: readonly [Partner, string | null, number, string | null][] = [
    [partner, "old", lastAcceptedAtMs, null],
    [partner, "old", Date.now() - 1_000, "status"],
    [partner, "old", Date.now(), "timeout"],
    [partner, "new", Date.now(), "status"],
    [partner, null, Date.now(), "dns"],
    [partner, "old", Date.now() - 8 * 86_400_000, null],
    [other, "another's", Date.now(), null],
  ];
  await bench.partitions.ensureDays(attempts.map(([, , atMs]) => atMs));
  for (const [{ id: partnerId }, keyId, atMs, reason] of attempts) {
    await bench.pool.query(
      `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url, key_id, reason)
       VALUES ($1, $2, 0, 1, $3, to_timestamp($4 / 1000.0), 5, 'https://partner.example/ipn', $5, $6)`,
      [partnerId, idAt(atMs), newId(), atMs, keyId, reason],
    );
  }
  const byKey = (a: { keyId: string }, b: { keyId: string }) => (a.keyId < b.keyId ? -1 : 1);
  // Of more than it reads, the newest.
  expect((await bench.store.keyUse(partner.id, 0, 4)).toSorted(byKey)).toMatchObject([
    { keyId: "new", accepted: 0, failed: 1 },
    { keyId: "old", accepted: 0, failed: 2 },
  ]);
  expect((await bench.notifications.keyUse(partner.id)).toSorted(byKey)).toEqual([
    { keyId: "new", accepted: 0, failed: 1, lastAcceptedAt: null },
    { keyId: "old", accepted: 1, failed: 2, lastAcceptedAt: new Date(lastAcceptedAtMs).toISOString() },
  ]);
});
