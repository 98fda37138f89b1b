import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { newId, type PartnerId } from "../../ids.ts";
import { MoneyOperations, type MoneyOperationsParts, type MoneyStore } from "../../ledger/money-operations.ts";
import { watchPlans } from "../plans.fixture.ts";
import { insertPartner } from "../rows.fixture.ts";
import { postgresMoney } from "./search.ts";

const commands = 3_000;
const limit = 10;
/** A page of keys of each of the partners, its rows, their transactions, and the partners. */
const rowsMax = 4 * limit + 10;

const connections = await openTestDatabase({ connectionsMax: 2 });
const { pool } = connections;
const carriedOut = watchPlans(pool);
let money: MoneyStore;
let partnerIds: readonly PartnerId[];

beforeAll(async () => {
  await pool.query("ANALYZE");
  partnerIds = [await insertPartner(pool), await insertPartner(pool)];
  for (const partnerId of partnerIds) {
    await pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts)
       SELECT $1::uuid, i.id, 'command', 'SALE',
         CASE i.nth WHEN 1 THEN 'INIT' WHEN 2 THEN 'ERROR' ELSE 'SUCCESS' END, i.id::text, i.id, '{"fields":{}}'
       FROM (SELECT nth, md5($1::uuid::text || nth)::uuid AS id FROM generate_series(1, $2::integer) AS nth) AS i`,
      [partnerId, commands],
    );
    await pool.query(
      `INSERT INTO reversals (partner_id, transaction_id, tid, state)
       SELECT $1::uuid, md5($1::uuid::text || nth)::uuid, 'T1',
         CASE nth WHEN 1 THEN 'PENDING' WHEN 2 THEN 'PARKED' ELSE 'DONE' END
       FROM generate_series(1, $2::integer) AS nth`,
      [partnerId, commands],
    );
    await pool.query(
      `INSERT INTO events (partner_id, id, kind, subject_id, detail)
       SELECT $1::uuid, md5('event' || $1::uuid::text || nth)::uuid, 'late_approval', md5($1::uuid::text || nth)::uuid,
         '{}'
       FROM generate_series(1, $2::integer) AS nth`,
      [partnerId, commands],
    );
    await pool.query(
      `INSERT INTO batches (partner_id, id, tid, mid, batch_no, currency, settlement_id, sale_quantity,
         sale_total_minor, void_quantity, void_total_minor, refund_quantity, refund_total_minor)
       SELECT $1::uuid, md5('batch' || $1::uuid::text || nth)::uuid, 'T1', 'M1', '000001', 'VND',
         md5($1::uuid::text || nth)::uuid, 0, 0, 0, 0, 0, 0
       FROM generate_series(1, $2::integer) AS nth`,
      [partnerId, commands],
    );
  }
  await pool.query("UPDATE transactions SET command = 'SETTLEMENT' WHERE id = md5(partner_id::text || 7)::uuid");
  // The oldest ones: a walk along the key would read all others first.
  await pool.query(
    `UPDATE transactions SET acquirer = CASE WHEN partner_id = $1 THEN 'first-bank' ELSE 'second-bank' END
     FROM (SELECT partner_id AS of, id AS found, row_number() OVER (PARTITION BY partner_id ORDER BY id) AS nth
       FROM transactions) AS aged
     WHERE partner_id = of AND id = found AND nth <= 20`,
    [partnerIds[0]],
  );
  money = postgresMoney(connections.homes);
});
beforeEach(() => {
  carriedOut.length = 0;
});
describe("a page of money", () => {
  test.each([
    ["transactions", undefined, limit],
    ["transactions", "INIT", 2],
    ["transactions", "ERROR", 2],
    ["transactions", "SUCCESS", limit],
    ["reversals", undefined, limit],
    ["reversals", "PENDING", 2],
    ["reversals", "PARKED", 2],
  ] as const)("of %s in the state %s reads little more than it shows", async (kind, state, count) => {
    const items = await money.search(kind, { state, limit });
    expect(items).toHaveLength(count);
    expect(items.map(({ id }) => id)).toEqual(
      items
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    if (state !== undefined) expect(new Set(items.map((item) => item["state"]))).toEqual(new Set([state]));
    expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
  });

  test.each([
    ["first-bank", 0],
    ["second-bank", 1],
  ])("of what went to %s reads little more than it shows", async (acquirer, nth) => {
    const of = { acquirer, limit };
    const items = await money.search("transactions", of);
    expect(items).toHaveLength(limit);
    const next = await money.search("transactions", { ...of, after: items.at(-1)?.id });
    expect(next).toHaveLength(limit);
    const all = [...items, ...next];
    expect(all.map(({ partnerId, acquirer: its }) => [partnerId, its])).toEqual(
      Array(2 * limit).fill([partnerIds[nth], acquirer]),
    );
    expect(all.map(({ id }) => id)).toEqual(
      all
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
    expect(await money.search("transactions", { ...of, partner: partnerIds[1 - nth] })).toEqual([]);
    expect(await money.search("transactions", { ...of, state: "SUCCESS" })).toHaveLength(limit);
    expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
  });

  test("of what went to the acquirer of the settings leaves out what went to others", async () => {
    const items = await money.search("transactions", { acquirer: "", limit });
    expect(items).toHaveLength(limit);
    expect(new Set(items.map(({ acquirer }) => acquirer))).toEqual(new Set([""]));
    expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
  });

  test("of batches has the latest settlement first, and goes on after the one before", async () => {
    const unused = {} as Omit<MoneyOperationsParts, "store">;
    const operations = new MoneyOperations({ ...unused, store: money });
    const first = await operations.search("batches", { limit });
    const next = await operations.search("batches", { limit, after: String(first.next) });
    expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
    const all = await money.search("batches", { limit: 2 * limit });
    expect([...first.items, ...next.items]).toEqual(all);
    const settlements = all.map(({ settlementId }) => settlementId);
    expect(new Set(settlements).size).toBe(2 * limit);
    expect(settlements).toEqual([...settlements].sort().reverse());
  });

  test("of events about one subject reads only those", async () => {
    const [partner] = partnerIds;
    const [{ id: subject = "" } = {}] = await money.search("transactions", { partner, limit: 1 });
    const items = await money.search("events", { partner, subject, limit });
    expect(items).toMatchObject([{ subjectId: subject, kind: "late_approval" }]);
    expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
  });

  test("goes on after the one before, and is of one partner where it is asked for", async () => {
    const [partner] = partnerIds;
    const first = await money.search("transactions", { partner, limit });
    const next = await money.search("transactions", { partner, limit, after: first.at(-1)?.id });
    const all = await money.search("transactions", { partner, limit: 2 * limit });
    expect([...first, ...next]).toEqual(all);
    expect(new Set(all.map(({ partnerId }) => partnerId))).toEqual(new Set([partner]));
  });
});

test("a settlement is found with the batch that it closed, and without reading others", async () => {
  const { rows } = await pool.query<{ id: string; batchId: string }>(
    `SELECT t.id, b.id AS "batchId" FROM transactions t JOIN batches b ON b.settlement_id = t.id
     WHERE t.command = 'SETTLEMENT' LIMIT 1`,
  );
  const [{ id, batchId } = { id: "", batchId: "" }] = rows;
  carriedOut.length = 0;
  expect(await money.settlement(id)).toMatchObject({ id, command: "SETTLEMENT", batchId, step: null, tries: null });
  expect(Math.max(...carriedOut.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(rowsMax);
});

test("a Sale that was reversed is in no sum of its merchant, nor is its Void, though it is being reversed again", async () => {
  const partner = await insertPartner(pool);
  const insert = `
    INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, original_id, reversal_state)
    VALUES ($1, $2::uuid, 'command', $3, 'SUCCESS', $2::uuid::text, $2::uuid, $4, $5, $6)`;
  const facts = { fields: { mid: "M1", currency: "VND", amount: "5" } };
  for (const reversal of [null, "done", "parked"]) {
    const sale = newId();
    await pool.query(insert, [partner, sale, "SALE", facts, null, reversal]);
    if (reversal !== "parked") await pool.query(insert, [partner, newId(), "VOID", facts, sale, null]);
    else
      await pool.query(
        `INSERT INTO reversals (partner_id, transaction_id, tid, state, ended_at) VALUES ($1, $2, 'T1', 'PARKED', now())`,
        [partner, sale],
      );
  }
  expect(await money.merchants({ partner, fromMs: 0, toMs: Date.now() + 1_000 })).toMatchObject([
    { saleQuantity: 1, saleTotal: "5", voidQuantity: 1, voidTotal: "5", reversedQuantity: 2 },
  ]);
});
