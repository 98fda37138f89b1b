import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { connectionsTo } from "../../../../../test/support/connections.ts";
import { createDatabase } from "../../../../../test/support/database.ts";
import { lowestId, newId, type PartnerId } from "../../ids.ts";
import { type CarriedOut, watchPlans } from "../plans.fixture.ts";
import { insertPartner } from "../rows.fixture.ts";
import { dayMs } from "../schema/partitions.ts";
import { LedgerRetention } from "./ledger-retention.ts";

let partnerId: PartnerId;
let dropped: Record<string, number>;
const ledgerDays = 400;

const database = await createDatabase();
const connections = connectionsTo(database.url, 12);
beforeEach(async () => {
  await query("TRUNCATE transactions, reversals, batches, terminals, pending, parked, partners CASCADE");
  partnerId = await insertPartner(connections.pool);
  dropped = {};
});
afterAll(async () => {
  await connections.close();
  await database.drop();
});

async function query<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
  return (await connections.pool.query<Row>(text, [...values])).rows;
}

function retention({ homes } = connections): LedgerRetention {
  const onDropped = (table: string, rows: number) => {
    dropped[table] = (dropped[table] ?? 0) + rows;
  };
  return new LedgerRetention({ homes, clock: { nowMs: Date.now }, ledgerDays, onDropped });
}

const insert = `
  INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, tid, batch_id, facts, created_at,
    completed_at, original_id, successor_id, successor_state, successor_command, reversal_state, notification_id,
    req_id)
  SELECT partner_id, id, coalesce(origin, 'command'), coalesce(command, 'SALE'), coalesce(state, 'SUCCESS'),
    coalesce(chain_id, id), tid, batch_id, '{}', created_at, coalesce(completed_at, created_at), original_id,
    successor_id, successor_state, CASE WHEN successor_id IS NOT NULL THEN 'VOID' END, reversal_state, notification_id,
    coalesce(req_id, id::text)
  FROM json_populate_record(NULL::transactions, $1)`;

/** Inserts a transaction that was created and ended this many days ago. */
async function made(daysAgo: number, change: Record<string, unknown> = {}): Promise<string> {
  const atMs = Date.now() - daysAgo * dayMs;
  const id = lowestId(atMs).slice(0, 14) + newId().slice(14);
  const row = { partner_id: partnerId, id, created_at: new Date(atMs).toISOString(), ...change };
  await query(insert, [JSON.stringify(row)]);
  return row.id;
}

async function left(): Promise<string[]> {
  const rows = await query<{ id: string }>("SELECT id FROM transactions ORDER BY id");
  return rows.map(({ id }) => id);
}

describe("the ledger's retention", () => {
  test("deletes older transactions, and keeps younger ones", async () => {
    for (const daysAgo of [401, 500, 4_000]) await made(daysAgo);
    const kept = [await made(399), await made(1)].sort();
    await retention().run();
    expect(await left()).toEqual(kept);
    expect(dropped).toEqual({ transactions: 3, reversals: 0, batches: 0 });
  });

  test("a reqId is free again once its transaction has gone, a tombstone too", async () => {
    await made(401, { req_id: "a" });
    await made(401, { req_id: "b", is_tombstone: true, state: "ERROR", command: "REVERSAL" });
    await retention().run();
    await made(0, { req_id: "a" });
    await made(0, { req_id: "b" });
  });

  test("batches without end are gone through by small steps, of every partner", async () => {
    const other = await insertPartner(connections.pool);
    const rows = `
      INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, created_at, completed_at)
      SELECT $1, id, 'command', 'LOGON', 'SUCCESS', id, '{}', $3, $3
      FROM (SELECT overlay($2 placing lpad(to_hex(n), 12, '0') from 25)::uuid AS id FROM generate_series(1, 1300) n)`;
    const atMs = Date.now() - 401 * dayMs;
    for (const id of [partnerId, other]) {
      await query(rows, [id, `${lowestId(atMs).slice(0, 14)}7000-8000-000000000000`, new Date(atMs)]);
    }
    const kept = await made(1);
    await retention().run();
    expect(await left()).toEqual([kept]);
    expect(dropped["transactions"]).toBe(2_600);
  });

  test("ids that a switch made up are found by their time, however many were written at once", async () => {
    const rows = `
      INSERT INTO transactions (partner_id, id, origin, command, state, external_id, chain_id, facts, created_at,
        completed_at, reversal_state)
      SELECT $1, id, 'switch', 'SALE', 'SUCCESS', id, id, '{}', $2, $2, $4
      FROM (SELECT overlay('ffffffff-ffff-4fff-8fff-000000000000' placing lpad(to_hex(n + $3), 12, '0') from 25)::uuid
              AS id FROM generate_series(1, 1100) n)`;
    const old = "2020-01-01T00:00:00.123456Z";
    // Most of them stay, so that the walk has to skip them.
    await query(rows, [partnerId, "2019-01-01T00:00:00Z", 6_000, null]);
    await query(rows, [partnerId, old, 0, "parked"]);
    await query(rows, [partnerId, old, 2_000, null]);
    await query(rows, [partnerId, new Date(), 4_000, null]);
    await retention().run();
    expect(dropped["transactions"]).toBe(2_200);
    expect(await left()).toHaveLength(2_200);
  });

  test.each([
    ["in flight", { state: "INIT" }],
    ["completed lately", { completed_at: new Date() }],
    ["in doubt, its Reversal pending", { reversal_state: "pending" }],
    ["in doubt, its Reversal parked", { reversal_state: "parked" }],
    ["held by a command in flight", { successor_id: newId(), successor_state: "in_flight" }],
    ["held by a command in doubt", { successor_id: newId(), successor_state: "in_doubt" }],
  ])("keeps a transaction that is %s, whatever its age", async (_, change) => {
    const kept = await made(401, change);
    await retention().run();
    expect(await left()).toEqual([kept]);
  });

  test.each(["pending", "parked"])("keeps a transaction whose notification is %s", async (table) => {
    const notificationId = newId();
    const kept = await made(401, { notification_id: notificationId });
    await made(401, { notification_id: newId() });
    const columns = table === "pending" ? "due_at, bytes" : "round, attempts_made, bytes, reason";
    const values = table === "pending" ? "now(), 1" : "1, 1, 1, 'timeout'";
    await query(`INSERT INTO ${table} (partner_id, id, chain_id, ${columns}) VALUES ($1, $2, $2, ${values})`, [
      partnerId,
      notificationId,
    ]);
    await retention().run();
    expect(await left()).toEqual([kept]);
  });

  const reversal = (column: string) => `
    INSERT INTO reversals (partner_id, transaction_id, tid, state, ${column})
    SELECT $1, t.id, 'T1', 'DONE', now() - age * interval '1 day' FROM (VALUES ($2::uuid, 399), ($3, 401)) AS t (id, age)`;
  test.each([
    ["whose Reversal was done since, as the statement of that day says", reversal("ended_at")],
    ["that an operator let stand since, as the statement of that day says", reversal("stood_at")],
    [
      "that a chargeback still asks about",
      `INSERT INTO clearing_entries (partner_id, id, kind, state, acquirer, transaction_id, file_id, differences)
       SELECT $1, gen_random_uuid(), 'chargeback', state, '', t.id, gen_random_uuid(), '[]'
       FROM (VALUES ($2::uuid, 'open'), ($3, 'resolved')) AS t (id, state)`,
    ],
  ])("keeps a transaction %s", async (_, others) => {
    const [kept, goes] = [await made(450), await made(450)];
    await query(others, [partnerId, kept, goes]);
    await retention().run();
    expect(await left()).toEqual([kept]);
  });

  test("keeps the transactions of an open batch until it is closed; the batch goes with its last one", async () => {
    const [open, closed] = [newId(), newId()];
    await query("INSERT INTO terminals (partner_id, tid, mid, batch_id) VALUES ($1, 'T1', 'M1', $2)", [
      partnerId,
      open,
    ]);
    const batch = `
      INSERT INTO batches (partner_id, id, tid, mid, batch_no, settlement_id, sale_quantity, sale_total_minor,
        void_quantity, void_total_minor, refund_quantity, refund_total_minor, closed_at)
      VALUES ($1, $2, 'T1', 'M1', '000001', $2, 1, 1, 0, 0, 0, 0, now() - $3 * interval '1 day')`;
    await query(batch, [partnerId, closed, 401]);
    const young = newId();
    await query(batch, [partnerId, young, 399]);
    const kept = await made(401, { tid: "T1", batch_id: open });
    const stays = await made(401, { tid: "T1", batch_id: closed, reversal_state: "parked" });
    await made(401, { tid: "T1", batch_id: closed });
    await retention().run();
    expect(await left()).toEqual([kept, stays].sort());
    expect(await query("SELECT id FROM batches ORDER BY id")).toEqual([closed, young].sort().map((id) => ({ id })));
    await query("UPDATE transactions SET reversal_state = 'done' WHERE id = $1", [stays]);
    await query("UPDATE terminals SET batch_id = $1", [newId()]);
    await retention().run();
    expect(await left()).toEqual([]);
    expect(await query("SELECT id FROM batches")).toEqual([{ id: young }]);
  });

  test("a chain goes as a whole, with its Reversals, and only once its youngest may go", async () => {
    const original = await made(480, { command: "PREAUTH" });
    const of = (id: string) => ({ original_id: id, chain_id: original });
    const complete = await made(450, { ...of(original), command: "PREAUTH_COMPLETE", reversal_state: "done" });
    const voided = await made(399, { ...of(complete), command: "VOID" });
    await query("INSERT INTO reversals (partner_id, transaction_id, tid, state) VALUES ($1, $2, 'T1', 'DONE')", [
      partnerId,
      complete,
    ]);
    await retention().run();
    expect(await left()).toEqual([original, complete, voided].sort());
    await query(
      `UPDATE transactions SET created_at = created_at - interval '2 days',
         completed_at = completed_at - interval '2 days'`,
    );
    await retention().run();
    expect(await left()).toEqual([]);
    expect(dropped).toEqual({ transactions: 3, reversals: 1, batches: 0 });
  });

  test("two that a switch reported as each other's originals go, too", async () => {
    const [one, other] = [await made(402), await made(401)];
    await query("UPDATE transactions SET original_id = CASE id WHEN $1 THEN $2::uuid ELSE $1 END", [one, other]);
    await retention().run();
    expect(await left()).toEqual([]);
  });

  test("keeps a transaction that a command has just locked", async () => {
    const locked = await made(401);
    await made(401);
    const client = await connections.pool.connect();
    await client.query("BEGIN");
    await client.query("SELECT FROM transactions WHERE id = $1 FOR UPDATE", [locked]);
    await retention().run();
    expect(await left()).toEqual([locked]);
    await client.query("UPDATE transactions SET successor_id = $1, successor_state = 'in_flight' WHERE id = $2", [
      newId(),
      locked,
    ]);
    await client.query("COMMIT");
    client.release();
    await retention().run();
    expect(await left()).toEqual([locked]);
  });

  test("two instances at once drop each once", async () => {
    for (let count = 0; count < 20; count += 1) await made(401 + count);
    await Promise.all([retention().run(), retention().run()]);
    expect(await left()).toEqual([]);
    expect(dropped["transactions"]).toBe(20);
  });

  test("no statement reads a table whole, whatever the statistics say", async () => {
    await query("ANALYZE transactions, batches, reversals, partners");
    const fill = `
      INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, created_at, completed_at)
      SELECT $1, id, 'command', 'LOGON', 'SUCCESS', id, '{}', $3, $3
      FROM (SELECT overlay($2 placing lpad(to_hex(n), 12, '0') from 25)::uuid AS id FROM generate_series(1, 20000) n)`;
    await query(fill, [partnerId, `${lowestId(Date.now()).slice(0, 14)}7000-8000-000000000000`, new Date()]);
    const atMs = Date.now() - 401 * dayMs;
    await query(fill, [partnerId, `${lowestId(atMs).slice(0, 14)}7000-8000-000000000000`, new Date(atMs)]);
    const watched = connectionsTo(database.url, 12);
    const plans: CarriedOut[] = watchPlans(watched.engine);
    await retention(watched).run();
    await watched.close();
    expect(dropped["transactions"]).toBe(20_000);
    const touched = plans.filter(({ text }) => /transactions/.test(text));
    expect(touched.length).toBeGreaterThan(100);
    expect(touched.filter(({ readWhole }) => readWhole.includes("transactions"))).toEqual([]);
    expect(Math.max(...touched.map(({ rowsTouched }) => rowsTouched))).toBeLessThan(5_000);
  });
});
