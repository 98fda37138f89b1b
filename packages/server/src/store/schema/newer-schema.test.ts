import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";

const reqId = randomUUID();

const connections = await openTestDatabase({ connectionsMax: 4 });
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);
const init = sampleInit(partnerId, leaseId, { reqId });
await transactions.begin(init);
const found = await transactions.find(partnerId, init.id);
if (found === undefined) throw new Error("what was begun is not found");
const known = found;

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
