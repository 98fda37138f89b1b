import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../../test/support/database.ts";
import { type LeaseId, newId, type PartnerId } from "../../ids.ts";
import { type Database, openDatabase } from "../database/database.ts";
import { type CarriedOut, watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";

const declined = 100_000;
/** Pages for one command on one terminal. */
const blocksMax = 100;
/** Enough runs for each of the engine's connections to keep the plan that it made while the batch was small. */
const runsToSettle = 40;

let database: TestDatabase;
let connections: Database;
let engine: CarriedOut[];
let partnerId: PartnerId;
let leaseId: LeaseId;
let transactions: PostgresTransactions;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 6, onIdleError: () => {} });
  engine = watchPlans(connections.engine);
  await createHistory(connections.pool);
  await connections.pool.query("ALTER TABLE transactions SET (autovacuum_enabled = off)");
  partnerId = await insertPartner(connections.pool);
  leaseId = await insertLease(connections.pool);
  transactions = new PostgresTransactions(connections);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

const dollars = { currency: "USD" };

test("a batch of 100,000 declined commands costs no more to judge a currency in than an empty one", {
  timeout: 120_000,
}, async () => {
  const tid = "T0000001";
  await transactions.begin(sampleInit(partnerId, leaseId, { tid }));
  const decline = "UPDATE transactions SET state = 'ERROR' WHERE partner_id = $1 AND state = 'INIT'";
  await connections.pool.query(decline, [partnerId]);
  for (let run = 0; run < runsToSettle; run += 1) {
    await transactions.begin(sampleInit(partnerId, leaseId, { tid, ...(run % 2 === 0 && dollars) }));
    await connections.pool.query(decline, [partnerId]);
  }
  await connections.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, tid, batch_id, currency)
     SELECT $1, ids.id, 'command', 'SALE', 'INIT', ids.id, ids.id, '{"fields":{}}', $2, t.batch_id, 'VND'
     FROM terminals t, (SELECT gen_random_uuid() AS id FROM generate_series(1, $3)) AS ids
     WHERE t.partner_id = $1 AND t.tid = $2`,
    [partnerId, tid, declined],
  );
  await connections.pool.query(decline, [partnerId]);
  // Removes index entries of rows that are no longer INIT: autovacuum does, or the first scan.
  await connections.pool.query("VACUUM transactions");
  engine.length = 0;
  const begun = await transactions.begin(sampleInit(partnerId, leaseId, { tid, ...dollars, reqId: newId() }));
  expect(begun.outcome).toBe("begun");
  const looked = engine.filter(({ text }) => text.includes("SELECT i.batch_id"));
  expect(looked).toHaveLength(1);
  expect(engine.filter(({ blocks }) => blocks > blocksMax)).toEqual([]);
});
