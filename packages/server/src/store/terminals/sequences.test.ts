import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { newId } from "../../ids.ts";
import { watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";

const declined = 100_000;
/** Pages for one command on one terminal. */
const blocksMax = 100;
/** Enough runs for each of the engine's connections to keep the plan that it made while the batch was small. */
const runsToSettle = 40;

const connections = await openTestDatabase({ connectionsMax: 6 });
const engine = watchPlans(connections.engine);
await createHistory(connections.pool);
await connections.pool.query("ALTER TABLE transactions SET (autovacuum_enabled = off)");
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);
const transactions = new PostgresTransactions(connections);

const dollars = { currency: "USD" };

test("a batch of 100,000 declined commands costs no more to judge a currency in than an empty one", async () => {
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
