import { expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { newId } from "../../ids.ts";
import type { Completed, Completion, Init } from "../../ledger/store.ts";
import { postgresReversals } from "../reversals/reversals.ts";
import {
  createHistory,
  insertLease,
  insertPartner,
  sampleFacts,
  sampleInit,
  sampleNotification,
} from "../rows.fixture.ts";
import { PostgresCompletions } from "./completions.ts";
import { PostgresTransactions } from "./transactions.ts";

const settles = { traceNo: true, invoiceNo: false, batch: false, settlement: "SETTLEMENT" } as const;
const totals = {
  currency: "VND",
  saleQuantity: 1,
  saleTotalMinor: 5n,
  voidQuantity: 0,
  voidTotalMinor: 0n,
  refundQuantity: 2,
  refundTotalMinor: 3n,
};

const connections = await openTestDatabase();
await createHistory(connections.pool);
const completions = new PostgresCompletions(connections.homes);
const transactions = new PostgresTransactions(connections);
const reversals = postgresReversals(connections.homes);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const newTid = () => `T${newId().slice(-7)}`;

async function begun(change: Partial<Init>): Promise<Init> {
  const init = sampleInit(partnerId, leaseId, change);
  const { outcome } = await transactions.begin(init);
  if (outcome !== "begun") throw new Error(outcome);
  return init;
}

function complete(init: Init, effects: Partial<Completion>): Promise<Completed> {
  const nothing = { notification: null, original: null, reversal: null, batch: null };
  const facts = sampleFacts({ batchNo: "000001" });
  return completions.complete({ partnerId, id: init.id, leaseId, state: "SUCCESS", facts, ...nothing, ...effects });
}

async function one(text: string, ...values: unknown[]): Promise<Record<string, unknown> | undefined> {
  return (await connections.pool.query(text, values)).rows[0];
}

const terminalOf = (tid: string) =>
  one("SELECT batch_no, batch_id, batch_closing, batch_currency FROM terminals WHERE tid = $1", tid);
const holderOf = ({ id }: Init) =>
  one(
    "SELECT successor_id AS id, successor_command AS command, successor_state AS state FROM transactions WHERE id = $1",
    id,
  );
const batchOf = async (tid: string) => String((await terminalOf(tid))?.["batch_id"]);

test("a late result has no effect: neither on the original, nor on a Reversal, nor on the batch", async () => {
  const tid = newTid();
  const sale = await begun({ tid });
  const voiding = await begun({ tid, command: "VOID", originalId: sale.id });
  const settlement = await begun({ tid, command: "SETTLEMENT", takes: settles });
  const batchId = await batchOf(tid);
  await connections.pool.query("UPDATE transactions SET lease_id = gen_random_uuid() WHERE tid = $1", [tid]);
  const late = await Promise.all([
    complete(voiding, { original: { id: sale.id, becomes: "free" }, reversal: { tid, requestedBy: null } }),
    complete(settlement, { batch: { tid, batchId, becomes: "closed", totals } }),
  ]);
  expect(late).toEqual([{ outcome: "late" }, { outcome: "late" }]);
  expect(await holderOf(sale)).toEqual({ id: voiding.id, command: "VOID", state: "in_flight" });
  expect(await one("SELECT FROM reversals WHERE transaction_id = $1", voiding.id)).toBeUndefined();
  expect(await terminalOf(tid)).toMatchObject({ batch_id: batchId, batch_closing: true });
});

test("only who holds an original frees it or ends it", async () => {
  const tid = newTid();
  const sale = await begun({ tid });
  const first = await begun({ tid, command: "VOID", originalId: sale.id });
  await complete(first, { state: "ERROR", original: { id: sale.id, becomes: "free" } });
  expect(await holderOf(sale)).toEqual({ id: null, command: null, state: null });
  const second = await begun({ tid, command: "VOID", originalId: sale.id });
  const stranger = await begun({ tid });
  await complete(stranger, { original: { id: sale.id, becomes: "free" } });
  expect(await holderOf(sale)).toEqual({ id: second.id, command: "VOID", state: "in_flight" });
  await complete(second, { original: { id: sale.id, becomes: "done" } });
  expect(await holderOf(sale)).toEqual({ id: second.id, command: "VOID", state: "done" });
});

test("what a command does to its original is written, though it completes together with a Sale", async () => {
  const tid = newTid();
  const sale = await begun({ tid });
  const voiding = await begun({ tid, command: "VOID", originalId: sale.id });
  const another = await begun({ tid });
  await Promise.all([complete(another, {}), complete(voiding, { original: { id: sale.id, becomes: "done" } })]);
  expect(await holderOf(sale)).toEqual({ id: voiding.id, command: "VOID", state: "done" });
});

test("a Reversal that is queued again is one, due at once, and keeps the REVERSAL that waits for it", async () => {
  const tid = newTid();
  const waiting = await begun({ tid });
  const sale = await begun({ tid });
  await complete(sale, { state: "ERROR", reversal: { tid, requestedBy: waiting.id } });
  const [due] = await reversals.claimDue(1, 3_600_000);
  const queuedAtMs = due?.queuedAtMs;
  await connections.pool.query("UPDATE transactions SET state = 'INIT', lease_id = $2 WHERE id = $1", [
    sale.id,
    leaseId,
  ]);
  await connections.pool.query(
    "UPDATE reversals SET state = 'DONE', left_by = now() - interval '2 days' WHERE transaction_id = $1",
    [sale.id],
  );
  await complete(sale, { state: "ERROR", reversal: { tid, requestedBy: null } });
  const again = await reversals.claimDue(10, 3_600_000);
  const sinceLeftMs = expect.toSatisfy((ms: number) => ms < 86_400_000);
  expect(await one("SELECT reversal_state FROM transactions WHERE id = $1", sale.id)).toEqual({
    reversal_state: "pending",
  });
  expect(again).toEqual([{ partnerId, transactionId: sale.id, tries: 3, queuedAtMs, sinceLeftMs, lastCode: "" }]);
  expect(await reversals.end(again[0] ?? fail(), { state: "DONE", responseCode: "00" })).toEqual({
    requestedBy: waiting.id,
  });
});

test("a batch is closed once: its number, its row and the settlement's go on together", async () => {
  const tid = newTid();
  await connections.pool.query(
    `INSERT INTO terminals (partner_id, tid, mid, batch_no, batch_currency)
     VALUES ($1, $2, 'M00000000000001', 999999, 'VND')`,
    [partnerId, tid],
  );
  const batchId = await batchOf(tid);
  const settlement = await begun({ tid, command: "SETTLEMENT", takes: settles });
  const notification = sampleNotification(partnerId, settlement.id);
  const end = { tid, batchId, becomes: "closed" as const, totals };
  const ended = { notification: { ...notification, settlesBatch: batchId }, batch: end };
  expect(await Promise.all([complete(settlement, ended), complete(settlement, ended)])).toMatchObject([
    { outcome: "completed" },
    { outcome: "completed" },
  ]);
  expect(await terminalOf(tid)).toMatchObject({ batch_no: 1, batch_closing: false, batch_currency: null });
  expect(await batchOf(tid)).not.toBe(batchId);
  expect(await one("SELECT FROM settlements WHERE id = $1", settlement.id)).toBeUndefined();
  expect(
    await one(
      `SELECT batch_no, currency, sale_quantity, sale_total_minor::text AS sales, void_quantity,
         void_total_minor::text AS voids, refund_quantity, refund_total_minor::text AS refunds, count(*) OVER ()
       FROM batches WHERE tid = $1`,
      tid,
    ),
  ).toEqual({
    ...{ batch_no: "000001", currency: "VND", count: 1, sale_quantity: 1, sales: "5" },
    ...{ void_quantity: 0, voids: "0", refund_quantity: 2, refunds: "3" },
  });
  const next = await begun({ tid, command: "SETTLEMENT", takes: settles });
  await complete(next, { batch: end });
  expect(await terminalOf(tid), "the end of a batch that is closed already").toMatchObject({
    batch_no: 1,
    batch_closing: true,
  });
});

test("a Settlement that reports a batch settled before is that batch's, and no other's, and opens the terminal", async () => {
  const [tid, other] = [newTid(), newTid()];
  for (const one of [tid, other]) {
    const settlement = await begun({ tid: one, command: "SETTLEMENT", takes: settles });
    await complete(settlement, { batch: { tid: one, batchId: await batchOf(one), becomes: "closed", totals } });
  }
  const settlementsOf = "SELECT id, settlement_id FROM batches WHERE tid = ANY ($1) ORDER BY tid = $2 DESC";
  const { rows: before } = await connections.pool.query(settlementsOf, [[tid, other], tid]);
  const [{ id: batchId }, others] = before;
  const late = JSON.stringify({ batchId, batchNo: "000001", state: "closed" });
  const reporting = await begun({ tid, command: "SETTLEMENT", takes: settles });
  await connections.pool.query("UPDATE terminals SET late_settlement = $2 WHERE tid = ANY ($1)", [[tid, other], late]);
  await complete(reporting, { batch: { tid, batchId, becomes: "reported", totals } });
  const stateOf = "SELECT late_settlement IS NULL AS reported, batch_closing FROM terminals WHERE tid = $1";
  expect(await one(stateOf, tid)).toEqual({ reported: true, batch_closing: false });
  expect(await one(stateOf, other)).toMatchObject({ reported: false });
  const { rows: after } = await connections.pool.query(settlementsOf, [[tid, other], tid]);
  expect(after).toEqual([{ id: batchId, settlement_id: reporting.id }, others]);
});

test("an aborted Settlement is kept for its answer if its totals were sent, beside those that may still be answered", async () => {
  const [tid, other, earlier, old] = [newTid(), newTid(), newId(), newId()];
  await begun({ tid: other, command: "SETTLEMENT", takes: settles });
  const waiting = await begun({ tid, command: "SETTLEMENT", takes: settles });
  const batchId = await batchOf(tid);
  const abort = (init: Init) =>
    complete(init, { state: "ERROR", batch: { tid, batchId, becomes: "open", totals } }).then(() =>
      one("SELECT unanswered_settlements AS kept, batch_closing FROM terminals WHERE tid = $1", tid),
    );
  const kept = [
    { id: earlier, untilMs: Date.now() + 3_600_000 },
    { id: old, untilMs: Date.now() - 1 },
  ];
  const keep = "UPDATE terminals SET unanswered_settlements = $2 WHERE tid = $1";
  await connections.pool.query(keep, [tid, JSON.stringify(kept)]);
  expect(await abort(waiting)).toEqual({ kept, batch_closing: false });
  expect(await terminalOf(other), "another terminal's").toMatchObject({ batch_closing: true });
  const sending = await begun({ tid, command: "SETTLEMENT", takes: settles });
  await connections.pool.query(
    `UPDATE settlements SET step = 'sending', is_uploaded = true, trace_no = 7, numbered_at = '2026-11-21T00:00:00Z'
     WHERE id = $1`,
    [sending.id],
  );
  const untilMs = expect.toSatisfy((ms: number) => ms > Date.now() + 47 * 3_600_000);
  const sent = { id: sending.id, batchId, isUploaded: true, traceNo: 7, atMs: Date.parse("2026-11-21T00:00:00Z") };
  expect(await abort(sending)).toMatchObject({ kept: [{ id: earlier }, { ...sent, untilMs }] });
});

test("an upload leaves the batch as it is, and one that is refused opens it under its number", async () => {
  const tid = newTid();
  await begun({ tid });
  const batchId = await batchOf(tid);
  const uploads = { ...settles, settlement: "BATCH_UPLOAD" as const };
  const settlement = await begun({ tid, command: "SETTLEMENT", takes: settles });
  const upload = await begun({ tid, command: "BATCH_UPLOAD", takes: uploads });
  await complete(upload, { batch: { tid, batchId, becomes: "unchanged", totals } });
  expect(await terminalOf(tid)).toMatchObject({ batch_id: batchId, batch_closing: true });
  await complete(settlement, { state: "ERROR", batch: { tid, batchId, becomes: "open", totals } });
  expect(await terminalOf(tid)).toEqual({
    batch_no: 1,
    batch_id: batchId,
    batch_closing: false,
    batch_currency: "VND",
  });
  expect(await one("SELECT FROM settlements WHERE tid = $1", tid)).toBeUndefined();
  expect(await one("SELECT FROM batches WHERE tid = $1", tid)).toBeUndefined();
});

test("a result that cannot be written leaves no transaction open to the next one", async () => {
  const [spoilt, whole] = [await begun({ tid: newTid() }), await begun({ tid: newTid() })];
  await expect(complete(spoilt, { state: "INVALID" as "ERROR", amountMinor: 1n })).rejects.toThrow();
  expect(await complete(whole, { amountMinor: 1n })).toMatchObject({ outcome: "completed" });
  const amountOf = ({ id }: Init) => one("SELECT amount_minor::text AS amount FROM transactions WHERE id = $1", id);
  expect(await Promise.all([whole, spoilt].map(amountOf))).toEqual([{ amount: "1" }, { amount: "150000" }]);
});

function fail(): never {
  throw new Error("It was due.");
}
