import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { urlCircuit } from "../../delivery/limits/circuits.ts";
import { idTimeMs, lowestId, type NotificationId, newId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { EventKind } from "../../telemetry/events.ts";
import { insertEvents } from "../events.ts";
import { sampleFacts } from "../rows.fixture.ts";
import { dayMs, dayOf, partitionName } from "../schema/partitions.ts";
import { idAt, insertAttempt, insertNotification, openBench, registerPartner } from "./notifications.fixture.ts";
import { searchable } from "./search.ts";

let partner: Partner;
let other: Partner;

const bench = await openBench();

beforeEach(async () => {
  await bench.pool.query(
    "TRUNCATE notifications, attempts, pending, parked, transactions, endpoints, partners CASCADE",
  );
  partner = await registerPartner(bench.pool);
  other = await registerPartner(bench.pool);
});

afterAll(() => bench.close());

async function insertTransaction(
  notificationId: NotificationId,
  names: { origin: "command" | "switch"; reqId?: string; externalId?: string; merchantTransId?: string },
): Promise<TransactionId> {
  const id = newId<"transaction">();
  await bench.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, chain_id, facts,
       notification_id, merchant_trans_id)
     VALUES ($1, $2, $3, 'SALE', 'SUCCESS', $4, $5, $2, $6, $7,
       left($6::json #>> '{fields,merchantTransId}', 64))`,
    [
      partner.id,
      id,
      names.origin,
      names.reqId ?? null,
      names.externalId ?? null,
      { kind: "card", command: "SALE", fields: { merchantTransId: names.merchantTransId ?? "" } },
      notificationId,
    ],
  );
  return id;
}

const idsOf = async (search: Partial<Parameters<typeof bench.notifications.search>[0]>) =>
  (await bench.notifications.search({ limit: 50, ...search })).items.map((item) => item.id);

describe("a search for one notification", () => {
  test("finds it by the beginning of its merchantTransId where nothing has just that", async () => {
    const ids: NotificationId[] = [];
    for (const merchantTransId of ["order-1", "order-17", "order-18", "ordeal"]) {
      const id = await insertNotification(bench.pool, partner.id);
      await insertTransaction(id, { origin: "command", merchantTransId });
      ids.push(id);
    }
    expect(await idsOf({ q: "order-1" })).toEqual([ids[0]]);
    expect(await idsOf({ q: "order-" })).toEqual([ids[2], ids[1], ids[0]]);
    expect(await idsOf({ q: "order_" })).toEqual([]);
  });

  test("finds it by its id, its transaction, reqId, externalId and merchantTransId, and nobody else's", async () => {
    const reqId = "5B8C5E0A-43C1-4F0A-9F60-1F3C3F0A7B11";
    const long = `order ${"7".repeat(100)}`;
    const id = await insertNotification(bench.pool, partner.id);
    const reported = await insertNotification(bench.pool, partner.id);
    await insertNotification(bench.pool, other.id);
    const transactionId = await insertTransaction(id, {
      origin: "command",
      reqId: reqId.toLowerCase(),
      merchantTransId: long,
    });
    const reportedReqId = newId();
    const names = { externalId: "EXT/1", merchantTransId: `${long}8`, reqId: reportedReqId };
    await insertTransaction(reported, { origin: "switch", ...names });
    for (const partnerId of [undefined, partner.id]) {
      expect(await idsOf({ partnerId, q: id.toUpperCase() })).toEqual([id]);
      expect(await idsOf({ partnerId, q: transactionId })).toEqual([id]);
      expect(await idsOf({ partnerId, q: reqId })).toEqual([id]);
      expect(await idsOf({ partnerId, q: "EXT/1" })).toEqual([reported]);
      expect(await idsOf({ partnerId, q: reportedReqId })).toEqual([reported]);
      expect(await idsOf({ partnerId, q: long })).toEqual([id]);
    }
    for (const q of [id, transactionId, reqId, "EXT/1", long]) {
      expect(await idsOf({ partnerId: other.id, q })).toEqual([]);
    }
    expect(await idsOf({ q: "rder" })).toEqual([]);
  });

  test("shows all that share a merchantTransId, the newest first, within the filter", async () => {
    const ids: NotificationId[] = [];
    for (const state of ["accepted", "parked", "pending"] as const) {
      const id = await insertNotification(bench.pool, partner.id, { state });
      await insertTransaction(id, { origin: "command", reqId: newId(), merchantTransId: "order 1" });
      ids.push(id);
    }
    expect(await idsOf({ q: "order 1" })).toEqual(ids.toReversed());
    expect(await idsOf({ q: "order 1", state: "parked" })).toEqual([ids[1]]);
    expect(await idsOf({ q: "order 1", from: new Date(Date.now() + 60_000).toISOString() })).toEqual([]);
    const page = await bench.notifications.search({ q: "order 1", limit: 2 });
    expect(page.items).toHaveLength(2);
    expect(await idsOf({ q: "order 1", after: page.next ?? "" })).toEqual([ids[0]]);
  });
});

test("a long merchantTransId is searched for by its first 64 characters, none of them cut in two", () => {
  expect(["", "a".repeat(65), "\u{1f600}".repeat(65)].map(searchable)).toEqual([
    null,
    "a".repeat(64),
    "\u{1f600}".repeat(64),
  ]);
});

test.each([
  [520, "begin so", (nth: number) => `till ${1_000 + nth}`],
  [5_020, "begin so", (nth: number) => `till ${10_000 + nth}`],
  [5_020, "are it", () => "till"],
])(
  "a search for a merchantTransId shows all %i that %s, the newest first, within the filter",
  async (count, _, name) => {
    const ids = Array.from({ length: count }, () => newId<"notification">());
    const contents = ids.map((id, nth) => JSON.stringify(sampleFacts({ id, merchantTransId: name(nth) })));
    await bench.pool.query(
      `WITH n AS (
       INSERT INTO notifications (partner_id, id, chain_id, command, content)
       SELECT $1, i.id, i.id, 'SALE', i.content FROM unnest($2::uuid[], $3::json[]) AS i (id, content)
       RETURNING id, content)
     INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, notification_id, merchant_trans_id)
     SELECT $1, n.id, 'command', 'SALE', 'SUCCESS', n.id, n.content, n.id, n.content #>> '{fields,merchantTransId}' FROM n`,
      [partner.id, ids, contents],
    );
    await insertNotification(bench.pool, partner.id);
    const allOf = async (search: Partial<Parameters<typeof bench.notifications.search>[0]>) => {
      const seen: string[] = [];
      for (let after: string | undefined; ; ) {
        const { items, next } = await bench.notifications.search({ limit: 500, q: "till", ...search, after });
        seen.push(...items.map(({ id }) => id));
        if (next === null) return seen;
        after = next;
      }
    };
    expect(await allOf({ partnerId: partner.id })).toEqual(ids.toReversed());
    const from = new Date(idTimeMs(ids.at(-1) as NotificationId)).toISOString();
    expect(await allOf({ from })).toContain(ids.at(-1));
    expect(await allOf({ from, partnerId: other.id })).toEqual([]);
  },
);

describe("a search for many", () => {
  test("shows the newest first, page by page, across days and partners", async () => {
    const now = Date.now();
    const ids: NotificationId[] = [];
    for (let i = 0; i < 12; i += 1) {
      const id = idAt(dayOf(now) - dayMs + i * (dayMs / 6));
      ids.push(await insertNotification(bench.pool, i % 2 === 0 ? partner.id : other.id, { id }));
    }
    const seen: string[] = [];
    let after: string | undefined;
    do {
      const { items, next } = await bench.notifications.search({ limit: 5, after });
      seen.push(...items.map((item) => item.id));
      after = next ?? undefined;
    } while (after !== undefined);
    expect(seen).toEqual(ids.toReversed());
    const all = {
      among: "history",
      fromId: lowestId(0),
      belowId: lowestId(dayOf(now) + dayMs),
      order: "newest",
    } as const;
    expect((await bench.store.keys(all, 8)).map(({ id }) => id)).toEqual(ids.toReversed().slice(0, 8));
    expect(await idsOf({ partnerId: other.id })).toEqual(ids.filter((_, i) => i % 2 === 1).toReversed());
    const from = new Date(dayOf(now)).toISOString();
    const to = new Date(dayOf(now) + dayMs / 2).toISOString();
    expect(await idsOf({ from, to })).toEqual(ids.slice(6, 9).toReversed());
  });

  test("tells the states apart", async () => {
    const accepted = await insertNotification(bench.pool, partner.id, { state: "accepted" });
    const pending = await insertNotification(bench.pool, partner.id, { state: "pending" });
    const parked = await insertNotification(bench.pool, partner.id, { state: "parked", reason: "tls" });
    await insertAttempt(bench.pool, partner.id, accepted, { attemptNo: 1, reason: "timeout" });
    await insertAttempt(bench.pool, partner.id, accepted, { attemptNo: 2 });
    await insertAttempt(bench.pool, partner.id, accepted, { attemptNo: 3, reason: "reset" });
    await insertAttempt(bench.pool, partner.id, pending, { attemptNo: 1, reason: "dns" });
    // It was parked by hand, or by its endpoint: for another reason than its last attempt's.
    await insertAttempt(bench.pool, partner.id, parked, { attemptNo: 1, reason: "status" });
    expect(await idsOf({ state: "accepted" })).toEqual([accepted]);
    const { items } = await bench.notifications.search({ limit: 10 });
    const { items: onlyPending } = await bench.notifications.search({ limit: 10, state: "pending" });
    const { items: onlyParked } = await bench.notifications.search({ limit: 10, state: "parked" });
    expect([...onlyParked, ...onlyPending]).toEqual(items.slice(0, 2));
    expect(items).toMatchObject([
      { id: parked, state: "parked", attemptsMade: 2, lastReason: "tls", lastHttpStatus: null, nextAttemptAt: null },
      { id: pending, state: "pending", attemptsMade: 1, lastReason: "dns", outcomeAt: null },
      {
        id: accepted,
        state: "accepted",
        attemptsMade: 2,
        lastReason: null,
        nextAttemptAt: null,
        outcomeAt: "2026-11-21T10:00:00.250Z",
      },
    ]);
    expect(items[1]?.nextAttemptAt).toMatch(/^\d{4}-/);
  });

  test("names the last attempt of the last round", async () => {
    const id = await insertNotification(bench.pool, partner.id, { state: "pending", round: 1 });
    await insertAttempt(bench.pool, partner.id, id, { attemptNo: 7, reason: "timeout" });
    await insertAttempt(bench.pool, partner.id, id, { attemptNo: 1, round: 1, reason: "status" });
    expect(await bench.notifications.find(id)).toMatchObject({ lastReason: "status", lastHttpStatus: 503 });
  });

  test("finds parked ones by their reason, page by page", async () => {
    const ids: NotificationId[] = [];
    for (const reason of ["tls", "connect", "tls", "tls", "connect"]) {
      const id = await insertNotification(bench.pool, partner.id, { state: "parked", reason });
      if (reason === "connect") ids.push(id);
      await insertTransaction(id, { origin: "command", reqId: newId(), merchantTransId: "order 2" });
    }
    const filter = { state: "parked", reason: "connect" } as const;
    const first = await bench.notifications.search({ ...filter, limit: 1 });
    expect(first.items.map(({ id }) => id)).toEqual([ids[1]]);
    const second = await bench.notifications.search({ ...filter, limit: 1, after: first.next ?? "" });
    expect([second.items.map(({ id }) => id), second.next]).toEqual([[ids[0]], null]);
    expect(await idsOf({ ...filter, q: "order 2" })).toEqual(ids.toReversed());
    expect((await bench.notifications.redeliverMany(filter, { to: "original", dryRun: true })).ids).toEqual(ids);
    const pending = await insertNotification(bench.pool, partner.id, { state: "pending" });
    await insertAttempt(bench.pool, partner.id, pending, { attemptNo: 1, reason: "connect" });
    await insertNotification(bench.pool, partner.id, { state: "accepted" });
    expect(await idsOf({ reason: "connect" })).toEqual([pending, ...ids.toReversed()]);
    expect(await idsOf({ state: "pending", reason: "connect" })).toEqual([pending]);
    const refused = bench.notifications.search({ state: "accepted", reason: "connect", limit: 1 });
    await expect(refused).rejects.toMatchObject({ fields: [{ field: "reason", code: "invalid_value" }] });
  });

  test("a delivery that waits for its endpoint is due at the endpoint's next probe, or has no time", async () => {
    const [origin, registered] = ["https://open.test", "https://gone.test/ipn"];
    await bench.pool.query(
      `UPDATE partners SET registered_origin = 'https://gone.test',
         settings = jsonb_set(settings, '{callBackUrl}', to_jsonb($1::text))`,
      [registered],
    );
    const ids = await Promise.all(
      [origin, ""].map(async (queue) => {
        const id = await insertNotification(bench.pool, partner.id, { state: "pending" });
        await bench.pool.query("UPDATE pending SET queue = $2, due_at = '2026-01-01T00:00:00Z' WHERE id = $1", [
          id,
          queue,
        ]);
        return id;
      }),
    );
    await bench.pool.query(
      `INSERT INTO endpoints (partner_id, id, kind, target, queue, state, probe_at)
       VALUES ($1, $2, 'origin', $3, $3, 'open', '2026-01-02T03:04:05Z'), ($1, $4, 'url', $5, $6, 'gone', NULL)`,
      [partner.id, newId(), origin, newId(), registered, urlCircuit(registered)],
    );
    const times = async () => {
      const { items } = await bench.notifications.search({ limit: 10 });
      return ids.map((id) => items.find((item) => item.id === id)?.nextAttemptAt);
    };
    expect(await times()).toEqual(["2026-01-02T03:04:05.000Z", null]);
    await bench.pool.query("UPDATE pending SET due_at = '2026-01-03T00:00:00Z' WHERE id = $1", [ids[0]]);
    expect(await times()).toEqual(["2026-01-03T00:00:00.000Z", null]);
    await bench.pool.query("UPDATE pending SET due_at = '2026-01-01T00:00:00Z'");
    await bench.pool.query("UPDATE endpoints SET state = 'closed', probe_at = NULL");
    expect(await times()).toEqual(["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.000Z"]);
    await bench.pool.query("UPDATE partners SET state = 'paused'");
    expect(await times()).toEqual([null, null]);
  });

  test("finds the few accepted ones behind many that are not, a bounded part at a time", async () => {
    const accepted = await insertNotification(bench.pool, partner.id);
    await bench.pool.query(
      `WITH made AS (
         INSERT INTO notifications (partner_id, id, chain_id, command, content)
         SELECT $1, (left($2, 18) || '-8' || lpad(to_hex(i), 3, '0') || right($2, 13))::uuid, $1, 'SALE', '{}'
         FROM generate_series(1, 1200) AS i RETURNING partner_id, id)
       INSERT INTO pending (partner_id, id, chain_id, due_at, bytes)
       SELECT partner_id, id, partner_id, now(), 2 FROM made`,
      [partner.id, newId(Date.now() + 1_000)],
    );
    expect(await idsOf({ state: "accepted", limit: 1 })).toEqual([accepted]);
  });

  test.each([
    [{ from: "yesterday" }, "invalid_value"],
    [{ after: "abc" }, "invalid_cursor"],
  ])("refuses %j", async (search, code) => {
    await expect(bench.notifications.search({ limit: 1, ...search })).rejects.toMatchObject({ code });
  });
});

describe("one notification", () => {
  test("is shown with its attempts, and an answer that is no text with replacement characters", async () => {
    const id = await insertNotification(bench.pool, partner.id, { callBackUrl: "https://partner.example/own" });
    await insertAttempt(bench.pool, partner.id, id, {
      attemptNo: 1,
      reason: "status",
      answer: Buffer.from([0x6e, 0xff, 0]),
    });
    await insertAttempt(bench.pool, partner.id, id, { attemptNo: 2 });
    const found = await bench.notifications.find(id);
    expect(found).toMatchObject({
      id,
      partnerId: partner.id,
      transactionId: null,
      kind: "card",
      state: "accepted",
      callBackUrl: "https://partner.example/own",
      attempts: [
        { attemptNo: 1, durationMs: 250, httpStatus: 503, reason: "status", answer: "n\uFFFD\0" },
        { attemptNo: 2, startedAt: "2026-11-21T10:00:00.000Z", reason: null, answer: null, address: "192.0.2.1" },
      ],
    });
    expect(await bench.notifications.find(id, partner.id)).toEqual(found);
  });

  test("is shown to the operator with what was recorded about it and its transaction, the oldest first", async () => {
    const transactionId = newId<"transaction">();
    const id = await insertNotification(bench.pool, partner.id, { transactionId });
    const record = (kind: EventKind, subjectId: string | null, partnerId: PartnerId | null, nth: number) =>
      insertEvents(bench.pool, [{ kind, partnerId, subjectId, detail: { nth } }], false);
    await record("delimiter_sent", transactionId, partner.id, 1);
    await record("parked", id, partner.id, 2);
    await record("parked", newId(), partner.id, 3);
    await record("parked", id, other.id, 4);
    await record("history_waiting", null, null, 5);
    await insertEvents(
      bench.pool,
      [{ kind: "parked", partnerId: partner.id, subjectId: id, detail: { nth: 6, item: { amount: "5" } } }],
      false,
    );
    const found = await bench.notifications.inspect(id);
    expect(found).toMatchObject({
      ...(await bench.notifications.find(id)),
      events: [
        { kind: "delimiter_sent", detail: { nth: 1 } },
        { kind: "parked", detail: { nth: 2 } },
        { kind: "parked", detail: { nth: 6, item: expect.stringContaining("an operator sees it") } },
      ],
    });
    expect(found?.events).toHaveLength(3);
    const alone = await insertNotification(bench.pool, partner.id);
    expect(await bench.notifications.inspect(alone)).toMatchObject({ transactionId: null, events: [] });
    expect(await bench.notifications.inspect(newId())).toBeUndefined();
  });

  test("shows the newest hundred events of very many", async () => {
    const id = await insertNotification(bench.pool, partner.id);
    const events = Array.from({ length: 103 }, (_, nth) => ({
      kind: "parked" as const,
      partnerId: partner.id,
      subjectId: id,
      detail: { nth },
    }));
    await insertEvents(bench.pool, events, false);
    const shown = (await bench.notifications.inspect(id))?.events.map(({ detail }) => detail["nth"]);
    expect(shown).toEqual(Array.from({ length: 100 }, (_, at) => at + 3));
  });

  test("is not found by another partner, under an unknown id, or under what is no id", async () => {
    const id = await insertNotification(bench.pool, partner.id);
    expect(await bench.notifications.find(id, other.id)).toBeUndefined();
    expect(await bench.notifications.find(newId())).toBeUndefined();
    expect(await bench.notifications.find("'; DROP TABLE parked")).toBeUndefined();
  });

  test("that is parked is found when its day of history is long gone", async () => {
    const day = dayOf(Date.now()) - 100 * dayMs;
    await bench.partitions.ensureDays([day]);
    const id = await insertNotification(bench.pool, partner.id, {
      id: idAt(day + 1),
      state: "parked",
      command: "SETTLEMENT",
      callBackUrl: "https://partner.example/own",
      content: '{"kind":"settlement","command":"SETTLEMENT","currency":"VND","fields":{"totalAmount":"5"}}',
    });
    const before = await bench.notifications.find(id);
    await bench.partitions.maintain();
    const { rows } = await bench.pool.query("SELECT to_regclass($1) AS found", [partitionName("notifications", day)]);
    expect(rows[0].found).toBeNull();
    expect(await bench.notifications.find(id)).toEqual(before);
    expect(before).toMatchObject({ kind: "settlement", callBackUrl: "https://partner.example/own" });
    const { items } = await bench.notifications.search({ limit: 10, command: "SETTLEMENT" });
    expect(items).toMatchObject([{ id, subject: { amount: "5", currency: "VND" } }]);
    expect(await idsOf({})).toEqual([id]);
    expect(await idsOf({ state: "parked", partnerId: partner.id })).toEqual([id]);
    expect(await idsOf({ q: id })).toEqual([id]);
    expect(await bench.notifications.find(newId())).toBeUndefined();
  });
});
