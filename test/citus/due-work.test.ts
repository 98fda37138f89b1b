import { afterAll, beforeAll, expect, test } from "vitest";
import { newId } from "../../packages/server/src/ids.ts";
import { type Database, openDatabase } from "../../packages/server/src/store/database/database.ts";
import { findHomes } from "../../packages/server/src/store/database/homes.ts";
import { postgresReversals } from "../../packages/server/src/store/reversals/reversals.ts";
import { prepareSchema } from "../../packages/server/src/store/schema/migrate.ts";
import { postgresComparisons } from "../../packages/server/src/store/settlements/comparisons.ts";
import { postgresSettlements } from "../../packages/server/src/store/settlements/settlements.ts";
import { postgresWaitingReports, releaseReport } from "../../packages/server/src/store/transactions/due.ts";
import { createDatabase, type TestDatabase } from "../support/database.ts";

let database: TestDatabase;
let homes: Database;
beforeAll(async () => {
  database = await createDatabase();
  await prepareSchema({ databaseUrl: database.url });
  const options = { connectionsMax: 4, onIdleError: () => undefined, homes: await findHomes(database.url) };
  homes = openDatabase(database.url, options);
}, 240_000);
afterAll(async () => {
  await homes.close();
  await database.drop();
}, 120_000);

// Citus refuses a statement when it plans it, with rows or without.
test("what is due is claimed in every home", async () => {
  const { homes: all } = homes;
  const stores = [
    postgresReversals(all),
    postgresWaitingReports(all),
    postgresSettlements(all),
    postgresComparisons(all),
  ];
  for (const store of stores) expect(await store.claimDue(10, 1_000), store.constructor.name).toEqual([]);
});

test("the transaction of a stray answer is looked for in every home", async () => {
  const reversals = postgresReversals(homes.homes);
  for (const tid of ["T0000001", ""]) expect(await reversals.undecided(tid, "000042")).toEqual([]);
});

test("a Reversal is postponed, ended, tried again and decided by a person", async () => {
  const reversals = postgresReversals(homes.homes);
  const [partnerId, transactionId] = [newId<"partner">(), newId<"transaction">()];
  const due = { partnerId, transactionId, tries: 1, queuedAtMs: 0, lastCode: "", sinceLeftMs: 0 };
  await reversals.queue(partnerId, transactionId, newId());
  await reversals.postpone(due, 1_000, "91");
  expect(await reversals.end(due, { state: "DONE", responseCode: "00" })).toBeUndefined();
  expect(await reversals.retry(partnerId, transactionId, "PARKED")).toBe(false);
  expect(await reversals.resolve(partnerId, transactionId)).toBe(false);
  await reversals.repeat(partnerId, transactionId);
});

test("a report that waited is released", async () => {
  const [partnerId, id] = [newId<"partner">(), newId<"transaction">()];
  const values = [partnerId, id, null, null, null, "{}"];
  expect(await releaseReport.rows(homes.homes.of(partnerId).engine, values)).toEqual([]);
});
