import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../../test/support/database.ts";
import type { LeaseId, PartnerId } from "../../ids.ts";
import type { Transaction } from "../../ledger/transaction.ts";
import { type Database, openDatabase } from "../database/database.ts";
import { insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";

let database: TestDatabase;
let connections: Database;
let transactions: PostgresTransactions;
let partnerId: PartnerId;
let leaseId: LeaseId;
let known: Transaction;
const reqId = randomUUID();

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 4, onIdleError: () => {} });
  transactions = new PostgresTransactions(connections);
  partnerId = await insertPartner(connections.pool);
  leaseId = await insertLease(connections.pool);
  const init = sampleInit(partnerId, leaseId, { reqId });
  await transactions.begin(init);
  const found = await transactions.find(partnerId, init.id);
  if (found === undefined) throw new Error("what was begun is not found");
  known = found;
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

const calls: readonly [string, () => Promise<unknown>][] = [
  ["find", () => transactions.find(partnerId, known.id)],
  ["findByReqId", () => transactions.findByReqId(partnerId, reqId)],
  ["chain", () => transactions.chain(known)],
  ["findReported", () => transactions.findReported(partnerId, ["x-1"])],
  ["takeOver", () => transactions.takeOver(leaseId, 10)],
];

/** Concurrent calls, so that every connection has prepared the statement. */
const onEveryConnection = (call: () => Promise<unknown>) => Promise.all(Array.from({ length: 8 }, call));

test.each(calls)("%s goes on when a later version gives its table another column", async (name, call) => {
  const before = await onEveryConnection(call);
  await connections.pool.query(`ALTER TABLE transactions ADD COLUMN of_${name.toLowerCase()} text`);
  expect(await onEveryConnection(call)).toEqual(before);
});
