import { afterAll, beforeAll, expect, test } from "vitest";
import { connectionsTo } from "../../../../../test/support/connections.ts";
import { createDatabase, type TestDatabase } from "../../../../../test/support/database.ts";
import { outcomeOf } from "../../delivery/delivery.fixture.ts";
import { type LeaseId, newId, type PartnerId } from "../../ids.ts";
import type { Database } from "../database/database.ts";
import { PostgresDeliveries } from "../deliveries/deliveries.ts";
import { type CarriedOut, watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleInit, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { PostgresTransactions } from "./transactions.ts";

/**
 * A connection keeps the plan that it made for a statement at its sixth run, and all indexes of a small table cost the
 * planner the same. So the right one must be used however few rows there are.
 */
const sizes = [0, 50, 100, 125, 150, 175, 200, 300, 400, 600, 1_200];

let database: TestDatabase;
let carriedOut: CarriedOut[];
let partnerId: PartnerId;
let leaseId: LeaseId;

beforeAll(async () => {
  database = await createDatabase();
  await withNewConnections(async ({ pool }) => {
    await createHistory(pool);
    for (const table of ["pending", "transactions", "notifications_now", "attempts_now"]) {
      await pool.query(`ALTER TABLE ${table} SET (autovacuum_enabled = off)`);
    }
    await pool.query("ANALYZE");
    partnerId = await insertPartner(pool);
    leaseId = await insertLease(pool);
  });
});

afterAll(() => database.drop());

async function withNewConnections(work: (connections: Database) => Promise<void>): Promise<void> {
  const connections = connectionsTo(database.url, 8);
  const { options } = connections.engine;
  const { onConnect } = options;
  options.onConnect = async (client) => {
    await onConnect?.(client);
    await client.query("SET plan_cache_mode = force_generic_plan");
  };
  carriedOut = watchPlans(connections.engine);
  await work(connections).finally(() => connections.close());
}

/** Inserts commands and reports alternately, each with its notification, with realistic UUIDs and strings. */
async function grow(pool: Database["pool"], rows: number): Promise<void> {
  const id = "(left($2::text, 24) || lpad(to_hex(i), 12, '0'))::uuid";
  await pool.query(
    `WITH history AS (
       INSERT INTO notifications (partner_id, id, transaction_id, chain_id, command, content)
       SELECT $1::uuid, ${id}, ${id}, ${id}, 'SALE', '{}' FROM generate_series(1, $3::integer) AS i)
     INSERT INTO transactions (partner_id, id, origin, command, state, req_id, external_id, chain_id, facts, tid)
     SELECT $1, ${id}, o.origin, 'SALE', 'SUCCESS', CASE o.origin WHEN 'command' THEN gen_random_uuid()::text END,
       CASE o.origin WHEN 'switch' THEN gen_random_uuid()::text END, ${id}, '{}', 'T0000002'
     FROM generate_series(1, $3::integer) AS i
     CROSS JOIN LATERAL (SELECT CASE i % 2 WHEN 0 THEN 'command' ELSE 'switch' END AS origin) AS o`,
    [partnerId, newId(), rows],
  );
}

/** The indexes of these tables that the statement used. */
function along(words: string, tables: RegExp): readonly string[] {
  const found = carriedOut.filter(({ text }) => text.includes(words));
  expect(found.length, words).toBeGreaterThan(0);
  const names = found.flatMap(({ along }) => along.map((index) => index.replace(/ × \d+$/, "")));
  return [...new Set(names.filter((name) => tables.test(name)))];
}

async function lookUpReqIds(connections: Database): Promise<void> {
  const transactions = new PostgresTransactions(connections);
  const tid = `T${newId().slice(-7)}`;
  await transactions.begin(sampleInit(partnerId, leaseId, { tid }));
  await transactions.begin(sampleInit(partnerId, leaseId, { tid, currency: "USD" }));
  expect(along("t.body_hash, t.facts, t.created_at, t.is_tombstone", /^transactions/)).toEqual(["transactions_req_id"]);
}

async function lookUpExternalIds({ homes }: Database): Promise<void> {
  const completions = new PostgresCompletions(homes);
  const report = sampleReport(partnerId);
  await completions.report(report);
  await completions.report({ ...report, id: newId() });
  expect(along("SELECT i.partner_id, i.external_id", /^transactions/)).toEqual(["transactions_external_id"]);
}

async function lookUpNotifications({ homes }: Database): Promise<void> {
  const deliveries = new PostgresDeliveries(homes);
  const [page] = await deliveries.read([{ partnerId, queue: "", after: undefined, rowsMax: 5, bytesMax: 1e9 }]);
  const [found] = page?.due ?? [];
  expect(page?.due).toHaveLength(1);
  expect(along("i.rows_max + 1", /^notifications/)).toEqual(["notifications_now_pkey"]);
  if (found?.delivery === undefined) throw new Error("its content was not found");
  const delivery = { ...found.delivery, follows: true, settlesBatch: newId() };
  await deliveries.preceding([delivery]);
  // One of the two indexes for the earlier ones, and the key for the row itself.
  expect([...along("e.batch_id = i.settles_batch", /^pending/)].sort()).toEqual([
    "pending_batch",
    "pending_chain",
    "pending_pkey",
  ]);
  await deliveries.record(outcomeOf(delivery, "accepted"));
  expect(along("WITH attempt AS", /^pending/)).toEqual(["pending_pkey"]);
}

test.each(sizes)("planned when there are some %i rows, a look-up by key goes along that key", async (rows) => {
  const before = sizes[sizes.indexOf(rows) - 1] ?? 0;
  await withNewConnections(async (connections) => {
    await grow(connections.pool, rows - before);
    await lookUpReqIds(connections);
    await lookUpExternalIds(connections);
    await lookUpNotifications(connections);
  });
});
