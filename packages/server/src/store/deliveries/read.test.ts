import fc from "fast-check";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { QueuePage, QueuePosition } from "../../delivery/store.ts";
import { newId, type PartnerId, shardOf } from "../../ids.ts";
import { insertPartner, sampleReport } from "../rows.fixture.ts";
import { useDeliveries } from "./deliveries.fixture.ts";

const own = "https://partner.example";
const context = useDeliveries();
const { report, read, query } = context;

const idsOf = ({ due }: QueuePage) => due.map(({ id }) => id as string);

/** Ids in the order in which they are due. */
async function inOrder(): Promise<string[]> {
  const rows = await query("SELECT id FROM pending WHERE partner_id = $1 ORDER BY due_at, id", [context.partnerId]);
  return rows.map(({ id }) => id as string);
}

describe("a page of a queue", () => {
  test("has what is due, in order, with all that an attempt needs", async () => {
    const sample = sampleReport(context.partnerId);
    await context.completions.report(sample);
    const { due, ...rest } = await read();
    expect(rest).toEqual({ hasMore: false, nextInMs: undefined });
    const { content, chainId } = sample.notification ?? { content: "", chainId: "" };
    expect(due).toHaveLength(1);
    expect(due[0]?.delivery).toMatchObject({
      partnerId: context.partnerId,
      id: sample.notification?.id,
      queue: "",
      round: 0,
      attemptsMade: 0,
      chainId,
      follows: false,
      settlesBatch: null,
      toRegistered: false,
      transactionId: sample.id,
      originalId: null,
      command: "SALE",
      callBackUrl: null,
      bytes: Buffer.byteLength(content),
    });
    expect(JSON.parse(due[0]?.delivery?.content ?? "")).toEqual(JSON.parse(content));
    expect(Math.abs((due[0]?.delivery?.scheduleStartMs ?? 0) - Date.now())).toBeLessThan(30_000);
  });

  test("counts the attempts of earlier rounds, and those of its own that a person asked for", async () => {
    await context.report(1);
    await context.query("UPDATE pending SET round = 2, attempts_made = 1, asked = 1, is_asked = true");
    await context.query(
      `INSERT INTO attempts (partner_id, id, round, attempt_no, lease_id, started_at, duration_ms, url)
       SELECT p.partner_id, p.id, r.round, r.no, $1, now(), 5, 'https://partner.example/ipn'
       FROM pending p CROSS JOIN (VALUES (0, 1), (0, 2), (1, 1), (2, 1)) AS r (round, no)`,
      [newId()],
    );
    expect(await context.first()).toMatchObject({ round: 2, attemptsBefore: 3, attemptsMade: 1, asked: 2 });
  });

  test("says by how much this machine's clock is ahead of the database's", async () => {
    await context.report(1);
    vi.useFakeTimers({ now: Date.now() + 7_200_000, toFake: ["Date"] });
    onTestFinished(() => void vi.useRealTimers());
    const { clockAheadMs = 0, scheduleStartMs } = await context.first();
    expect(Math.round(clockAheadMs / 3_600_000)).toBe(2);
    expect(Date.now() - clockAheadMs).toBeGreaterThanOrEqual(scheduleStartMs);
  });

  test("changes nothing: a second look finds the same", async () => {
    await report(3);
    expect(await read()).toEqual(await read());
  });

  test("is of one partner and one callback origin alone", async () => {
    const other = await insertPartner(context.connections.pool);
    await report(2);
    await report(1, { callBackUrl: `${own}/ipn` });
    await report(4, { partnerId: other });
    expect((await read()).due).toHaveLength(2);
    expect((await read({ queue: own })).due).toMatchObject([{ delivery: { queue: own, callBackUrl: `${own}/ipn` } }]);
    expect((await read({ partnerId: other })).due).toHaveLength(4);
    expect((await read({ partnerId: other, queue: own })).due).toEqual([]);
  });

  test("ends at the rows asked for, and says that there is more only when there is", async () => {
    await report(5);
    const ids = await inOrder();
    const page = await read({ rowsMax: 3 });
    expect(idsOf(page)).toEqual(ids.slice(0, 3));
    expect(page).toMatchObject({ hasMore: true, nextInMs: undefined });
    expect(await read({ rowsMax: 5 })).toMatchObject({ hasMore: false });
  });

  test("ends at the bytes asked for, of which the last row may be over", async () => {
    await report(4);
    await query("UPDATE pending SET bytes = 20");
    const page = await read({ bytesMax: 30 });
    expect(page.due).toHaveLength(2);
    expect(page.hasMore).toBe(true);
    expect((await read({ bytesMax: 80 })).hasMore).toBe(false);
  });

  test("has its first row whatever its size, and the next page goes on with the smaller ones", async () => {
    await report(3);
    const [large] = await inOrder();
    await query("UPDATE pending SET bytes = CASE WHEN id = $1 THEN 90 ELSE 20 END", [large]);
    const page = await read({ bytesMax: 50 });
    expect(idsOf(page)).toEqual([large]);
    expect(page).toMatchObject({ hasMore: true, due: [{ delivery: { bytes: 90 } }] });
    expect((await read({ bytesMax: 50, after: page.due[0] })).due).toHaveLength(2);
  });

  test("says when the next one is due, after what is due", async () => {
    await report(4);
    const ids = await inOrder();
    await query("UPDATE pending SET due_at = now() + interval '2 hours' WHERE id = $1", [ids[1]]);
    await query("UPDATE pending SET due_at = now() + interval '1 hour' WHERE id = $1", [ids[2]]);
    const page = await read();
    expect(idsOf(page)).toEqual([ids[0], ids[3]]);
    expect(page.hasMore).toBe(false);
    expect(page.nextInMs).toBeGreaterThan(3_000_000);
    expect(page.nextInMs).toBeLessThanOrEqual(3_600_000);
  });

  test("that is empty is complete, with nothing to wait for", async () => {
    expect(await read()).toEqual({ due: [], hasMore: false, nextInMs: undefined });
    expect(await context.deliveries.read([])).toEqual([]);
  });

  test("names a row whose day of history is gone, without a delivery", async () => {
    await report(2);
    const [gone] = await inOrder();
    await query("DELETE FROM notifications WHERE id = $1", [gone]);
    expect((await read()).due).toMatchObject([{ id: gone, delivery: undefined }, { delivery: { command: "SALE" } }]);
  });

  test("knows the transaction that a switch's original became, whichever came first, and no other partner's", async () => {
    const original = sampleReport(context.partnerId);
    const { externalId } = original;
    const other = await insertPartner(context.connections.pool);
    await context.completions.report(sampleReport(other, { externalId, notification: null }));
    const sample = sampleReport(context.partnerId, { originalExternalId: original.externalId, command: "VOID" });
    const notification = sample.notification && { ...sample.notification, originalExternalId: original.externalId };
    await context.completions.report({ ...sample, notification });
    expect((await read()).due).toMatchObject([{ delivery: { originalId: null } }]);
    await context.completions.report({ ...original, notification: null });
    expect((await read()).due).toMatchObject([{ delivery: { originalId: original.id } }]);
  });

  test("comes for each read, in the order of the reads, each within its own bounds", async () => {
    const other = await insertPartner(context.connections.pool);
    await report(3);
    await report(2, { partnerId: other });
    const all = { queue: "", after: undefined, bytesMax: 1e9 };
    const pages = await context.deliveries.read([
      { ...all, partnerId: other, rowsMax: 10 },
      { ...all, partnerId: newId<"partner">(), rowsMax: 10 },
      { ...all, partnerId: context.partnerId, rowsMax: 1 },
    ]);
    expect(pages.map(({ due, hasMore }) => [due.length, hasMore])).toEqual([
      [2, false],
      [0, false],
      [1, true],
    ]);
  });
});

describe("read from a cursor", () => {
  test("a page has what is behind it, be all of it due in the same microsecond", async () => {
    await report(5);
    await query("UPDATE pending SET due_at = '2026-01-02 03:04:05.678901Z'");
    const ids = await inOrder();
    const seen: string[] = [];
    let after: QueuePosition | undefined;
    for (let pages = 0; pages < 5; pages += 1) {
      const page = await read({ after, rowsMax: 1 });
      seen.push(...idsOf(page));
      after = page.due[0];
    }
    expect(seen).toEqual(ids);
    expect(after?.dueAtUs).toBe(Date.parse("2026-01-02T03:04:05.678Z") * 1_000 + 901);
    expect((await read({ after })).due).toEqual([]);
  });

  test("a page leaves out what committed late, before it; the head has it", async () => {
    await report(2);
    const [, after] = (await read()).due;
    await report(1);
    await query("UPDATE pending SET due_at = now() - interval '1 hour' WHERE id > $1", [after?.id]);
    expect((await read({ after })).due).toEqual([]);
    expect((await read()).due).toHaveLength(3);
  });

  test("the pages of any queue have each due row once, in order", async () => {
    const row = fc.record({ hours: fc.integer({ min: -6, max: 3 }), bytes: fc.integer({ min: 0, max: 40 }) });
    const bounds = { rowsMax: fc.integer({ min: 1, max: 5 }), bytesMax: fc.integer({ min: 1, max: 80 }) };
    await fc.assert(
      fc.asyncProperty(fc.array(row, { maxLength: 12 }), fc.record(bounds), async (rows, { rowsMax, bytesMax }) => {
        await query("TRUNCATE pending");
        await report(rows.length);
        const ids = await inOrder();
        await query(
          `UPDATE pending p SET due_at = date_trunc('hour', now()) + i.hours * interval '1 hour', bytes = i.bytes
           FROM unnest($1::uuid[], $2::integer[], $3::integer[]) AS i (id, hours, bytes) WHERE p.id = i.id`,
          [ids, rows.map(({ hours }) => (hours > 0 ? hours + 1 : hours - 1)), rows.map(({ bytes }) => bytes)],
        );
        const expected = await query("SELECT id FROM pending WHERE due_at <= now() ORDER BY due_at, id");
        const seen: string[] = [];
        let page: QueuePage;
        let after: QueuePosition | undefined;
        do {
          page = await read({ after, rowsMax, bytesMax });
          expect(page.due.length).toBeLessThanOrEqual(rowsMax);
          const bytes = page.due.map(({ delivery }) => delivery?.bytes ?? 0);
          expect(bytes.slice(0, -1).reduce((sum, one) => sum + one, 0)).toBeLessThan(bytesMax);
          if (page.hasMore) expect(page.due).not.toEqual([]);
          seen.push(...idsOf(page));
          after = page.due.at(-1);
        } while (page.hasMore);
        expect(seen).toEqual(expected.map(({ id }) => id));
        expect(page.nextInMs !== undefined).toBe(rows.some(({ hours }) => hours > 0));
      }),
      { numRuns: 40 },
    );
  });
});

describe("the heads of queues", () => {
  test("are one for each queue of the shards asked for, the one that is due first", async () => {
    const partners: PartnerId[] = [context.partnerId];
    for (let nth = 0; nth < 3; nth += 1) partners.push(await insertPartner(context.connections.pool));
    for (const partnerId of partners) {
      await report(2, { partnerId });
      await report(2, { partnerId, callBackUrl: `${own}/ipn` });
    }
    await query("UPDATE pending SET due_at = now() + interval '1 hour' WHERE queue <> ''");
    const heads = await context.deliveries.heads([...new Set(partners.map(shardOf))]);
    const expected = await query(
      `SELECT DISTINCT ON (partner_id, queue) partner_id AS "partnerId", queue, id, round,
         attempts_made AS "attemptsMade"
       FROM pending
       ORDER BY partner_id, queue, due_at, id`,
    );
    expect(expected).toHaveLength(8);
    const sorted = [...heads].sort((a, b) => (a.partnerId + a.queue < b.partnerId + b.queue ? -1 : 1));
    expect(sorted.map(({ dueInMs: _, ...head }) => head)).toEqual(expected);
    for (const { queue, dueInMs } of heads) {
      if (queue === "") expect(dueInMs).toBeLessThanOrEqual(0);
      else expect(dueInMs).toBeGreaterThan(3_000_000);
    }
  });

  test("of other shards stay out, and there are none where nothing is pending", async () => {
    await report(1);
    const shard = shardOf(context.partnerId);
    expect(await context.deliveries.heads([(shard + 1) % 256])).toEqual([]);
    expect(await context.deliveries.heads([])).toEqual([]);
    expect(await context.deliveries.heads([shard])).toMatchObject([{ partnerId: context.partnerId, queue: "" }]);
  });

  test("stand in the shard that the last byte of the partner's id says", async () => {
    await report(1);
    expect(await query("SELECT shard FROM pending")).toEqual([{ shard: shardOf(context.partnerId) }]);
  });
});
