import type { Pool, QueryConfig } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { type LeaseId, newId } from "../../ids.ts";
import type { Init, Transaction } from "../../ledger/store.ts";
import { createHistory, insertLease, insertPartner, sampleInit, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { PostgresTransactions } from "./transactions.ts";

const connections = await openTestDatabase();
await createHistory(connections.pool);
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const init = (change: Partial<Init> = {}) => sampleInit(partnerId, leaseId, change);

test("a command whose lease is gone is taken over once; that of a lease that is there is not touched", async () => {
  const lost = sampleInit(partnerId, newId<"lease">(), { tid: "T-DEAD" });
  const living = init({ tid: "T-LIVE" });
  await transactions.begin(lost);
  await transactions.begin(living);
  const taken = await transactions.takeOver(leaseId, 100);
  expect(taken).toMatchObject([{ id: lost.id, runBy: leaseId }]);
  expect(await transactions.takeOver(leaseId, 100)).toEqual([]);
});

test("a transaction that another instance took over after the look is left to it", async () => {
  const lost = sampleInit(partnerId, newId<"lease">(), { tid: "T-TWICE" });
  await transactions.begin(lost);
  const { engine, pool } = connections;
  let other: LeaseId | undefined;
  const query = async (statement: QueryConfig) => {
    const result = await engine.query(statement);
    if (other === undefined) {
      // It also began after our read.
      other = await insertLease(pool);
      expect(await transactions.takeOver(other, 100)).toMatchObject([{ id: lost.id }]);
    }
    return result;
  };
  const slow = new PostgresTransactions({ homes: connections.homes, engine: { query } as unknown as Pool });
  expect(await slow.takeOver(leaseId, 100)).toEqual([]);
  expect(await transactions.find(partnerId, lost.id)).toMatchObject({ runBy: other });
});

test("a message is noted for another host while its command runs, and not once it has ended", async () => {
  const one = init({ tid: "T-HOSTS" });
  await transactions.begin(one);
  expect(await transactions.redirect(partnerId, one.id, leaseId, "second")).toBe(true);
  expect(await transactions.redirect(partnerId, one.id, newId<"lease">(), "third"), "taken over").toBe(false);
  await connections.pool.query("UPDATE transactions SET state = 'ERROR' WHERE id = $1", [one.id]);
  expect(await transactions.redirect(partnerId, one.id, leaseId, "third")).toBe(false);
  expect(await transactions.find(partnerId, one.id)).toMatchObject({ site: "second" });
});

test("commands find transactions while searches have every connection of people", async () => {
  const one = init({ tid: "T-BUSY" });
  await transactions.begin(one);
  const { pool } = connections;
  const searches = await Promise.all(Array.from({ length: pool.options.max }, () => pool.connect()));
  onTestFinished(() => {
    for (const search of searches) search.release();
  });
  const found = await transactions.find(partnerId, one.id);
  expect(found).toMatchObject({ id: one.id });
  expect(await transactions.findByReqId(partnerId, one.reqId)).toEqual(found);
  expect(await transactions.findBegun(partnerId, one.reqId, one.bodyHash)).toBe(one.id);
  expect(await transactions.chain(found as Transaction)).toEqual([found]);
});

test("a transaction is found by its reqId in any case of letters, and by nobody else's partner id", async () => {
  const one = init({ tid: "T-FIND" });
  await transactions.begin(one);
  expect((await transactions.findByReqId(partnerId, one.reqId.toUpperCase()))?.id).toBe(one.id);
  expect(await transactions.findByReqId(newId(), one.reqId)).toBeUndefined();
  expect(await transactions.find(newId(), one.id)).toBeUndefined();
});

test("what was reversed before it arrived is no transaction, by its reqId or its id", async () => {
  const reqId = newId();
  expect(await transactions.reverseBeforeArrival(partnerId, reqId)).toBeUndefined();
  const { rows } = await connections.pool.query("SELECT id FROM transactions WHERE req_id = $1", [reqId]);
  expect(rows).toHaveLength(1);
  expect(await transactions.find(partnerId, rows[0].id)).toBeUndefined();
  expect(await transactions.findByReqId(partnerId, reqId)).toBeUndefined();
});

test("a chain is read to its end, also of two that a switch reported as each other's originals", async () => {
  const completions = new PostgresCompletions(connections.homes);
  const [first, second] = [newId<"transaction">(), newId<"transaction">()];
  await completions.report(sampleReport(partnerId, { id: first, originalId: second, command: "VOID" }));
  await completions.report(sampleReport(partnerId, { id: second, originalId: first, command: "VOID" }));
  const found = await transactions.find(partnerId, first);
  if (found === undefined) throw new Error("It was reported.");
  expect((await transactions.chain(found)).map(({ id }) => id)).toEqual([first, second]);
});
