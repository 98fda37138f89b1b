import type { ClientBase } from "pg";
import { expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits } from "../../../../../test/support/locks.ts";
import { newId, type TransactionId } from "../../ids.ts";
import type { DueSettlement } from "../../ledger/settlements/store.ts";
import { watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleInit } from "../rows.fixture.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";
import { postgresSettlements, totalsInJson } from "./settlements.ts";

const settles = { traceNo: true, invoiceNo: false, batch: false, settlement: "SETTLEMENT" } as const;
const heldForMs = 3_600_000;

const connections = await openTestDatabase();
const engine = watchPlans(connections.engine);
await createHistory(connections.pool);
const settlements = postgresSettlements(connections.homes);
const transactions = new PostgresTransactions(connections);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

const newTid = () => `T${newId().slice(-7)}`;

async function settling(tid = newTid()): Promise<TransactionId> {
  const init = sampleInit(partnerId, leaseId, { tid, command: "SETTLEMENT", takes: settles });
  await transactions.begin(init);
  return init.id;
}

/** Claims the settlement of a terminal for the second time. */
async function claimed(tid: string): Promise<DueSettlement> {
  for (const forMs of [0, heldForMs]) {
    const due = (await settlements.claimDue(20, forMs)).find((one) => one.tid === tid);
    if (due?.tries === 2) return due;
  }
  throw new Error("It was due.");
}

/** Inserts a transaction of a batch in its final state. */
async function booked(
  batchId: string,
  change: Readonly<Record<string, unknown>> = {},
  by: Pick<ClientBase, "query"> = connections.pool,
): Promise<string> {
  const id = newId();
  const facts = JSON.stringify({ kind: "card", fields: { reqId: `r-${id}`, refId: `f-${id}` } });
  const row = { command: "SALE", state: "SUCCESS", reversal_state: null, successor_command: null, ...change };
  await by.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, tid, batch_id,
       amount_minor, currency, reversal_state, successor_id, successor_command, successor_state)
     VALUES ($1, $2::uuid, 'command', $3, $4, $2::text, $2::uuid, $5, 'T-BOOKED', $6, 100, 'VND', $7,
       CASE WHEN $8::text IS NOT NULL THEN gen_random_uuid() END, $8::text,
       CASE WHEN $8::text IS NOT NULL THEN 'done' END)`,
    [partnerId, id, row.command, row.state, facts, batchId, row.reversal_state, row.successor_command],
  );
  return id;
}

test("one settlement is taken by one instance, and by another once it was held long enough", async () => {
  const id = await settling();
  const both = await Promise.all([settlements.claimDue(20, heldForMs), settlements.claimDue(20, heldForMs)]);
  expect(both.flat()).toMatchObject([{ id, kind: "SETTLEMENT", step: "waiting", isUploaded: false, tries: 1 }]);
  expect(await settlements.claimDue(20, heldForMs)).toEqual([]);
  const [due] = both.flat();
  if (due === undefined) throw new Error("It was due.");
  await settlements.postpone(due, 0);
  expect(await settlements.claimDue(20, heldForMs)).toMatchObject([{ id, tries: 2 }]);
});

test("numbers of its messages stay with the step, and the next one has its own", async () => {
  const tid = newTid();
  await settling(tid);
  await transactions.begin(sampleInit(await insertPartner(connections.pool), leaseId, { tid }));
  const due = await claimed(tid);
  await connections.pool.query("UPDATE terminals SET trace_no = 999998 WHERE tid = $1", [tid]);
  const first = await settlements.reserveTraceNumbers(due, 3);
  expect(first).toMatchObject({ traceNos: ["999999", "000001", "000002"], repeat: false });
  expect(await settlements.reserveTraceNumbers(due, 5)).toEqual({ ...first, repeat: true });
  // An acknowledged message leaves the numbers of the others as they were.
  const upTo = newId<"transaction">();
  expect(await settlements.acknowledge(due, upTo, heldForMs)).toBe(true);
  expect(await settlements.acknowledge(due, upTo, heldForMs)).toBe(false);
  const rest = { ...due, uploadedUpTo: upTo, tries: 1 };
  expect((await settlements.reserveTraceNumbers(rest, 5)).traceNos).toEqual(["000001", "000002"]);
  await settlements.advance(rest, { ...due, step: "sending", isUploaded: true }, heldForMs);
  expect(await settlements.reserveTraceNumbers(due, 1)).toMatchObject({ traceNos: ["000003"], repeat: false });
});

test("a step that was noted is where the next one goes on, with its tries from the beginning", async () => {
  const tid = newTid();
  const id = await settling(tid);
  const due = await claimed(tid);
  const noted = {
    ...due,
    step: "uploading",
    isUploaded: true,
    uploadedUpTo: newId<"transaction">(),
    tries: 1,
  } as const;
  const { uploadedUpTo } = noted;
  expect(await settlements.advance(due, noted, heldForMs)).toBe(true);
  expect(await settlements.claimDue(20, heldForMs)).toEqual([]);
  // The claim of the step before has ended.
  for (const stale of [{ step: "sending" }, { isUploaded: false }, { uploadedUpTo: null }, { tries: 2 }] as const) {
    expect(await settlements.postpone({ ...noted, ...stale }, 0), JSON.stringify(stale)).toBe(false);
  }
  expect(await settlements.advance(due, noted, heldForMs)).toBe(false);
  expect(await settlements.postpone(noted, 0)).toBe(true);
  expect(await settlements.claimDue(20, heldForMs)).toMatchObject([
    { id, step: "uploading", isUploaded: true, uploadedUpTo, tries: 2 },
  ]);
});

test("a terminal is quiet beside its settlement and a Logon, and no money command or Reversal of another", async () => {
  const [tid, other, stranger] = [newTid(), newTid(), await insertPartner(connections.pool)];
  await settling(tid);
  await transactions.begin(sampleInit(partnerId, leaseId, { tid, command: "LOGON" }));
  await transactions.begin(sampleInit(partnerId, leaseId, { tid: other }));
  const queue = "INSERT INTO reversals (partner_id, transaction_id, tid) VALUES ($1, $2, $3)";
  await connections.pool.query(queue, [partnerId, newId(), other]);
  await transactions.begin(sampleInit(stranger, leaseId, { tid }));
  await connections.pool.query(queue, [stranger, newId(), tid]);
  const reversed = newId();
  await connections.pool.query(queue, [partnerId, reversed, tid]);
  const send = (due: DueSettlement) => settlements.advance(due, { ...due, step: "sending" }, heldForMs);
  const due = await claimed(tid);
  expect(await send(due)).toBe(false);
  // One that is being sent again at this moment: its decision has the terminal's lock.
  const decision = await connections.pool.connect();
  onTestFinished(() => decision.release(true));
  const set = "UPDATE reversals SET state = $2 WHERE transaction_id = $1";
  await decision.query(set, [reversed, "PARKED"]);
  await decision.query("BEGIN");
  await decision.query("SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR SHARE", [partnerId, tid]);
  await decision.query(set, [reversed, "PENDING"]);
  const sent = send(due);
  await lockWaits(connections.pool);
  await decision.query("COMMIT");
  expect(await sent).toBe(false);
  await decision.query(set, [reversed, "PARKED"]);
  expect(await send(due)).toBe(true);
  await settling(other);
  expect(await send(await claimed(other))).toBe(false);
});

test("totals, uploads and list count alike what is voided, reversed, declined and parked", async () => {
  const batchId = newId();
  const stands = await booked(batchId);
  const completed = await booked(batchId, { command: "PREAUTH_COMPLETE" });
  const voided = await booked(batchId, { successor_command: "VOID" });
  await booked(batchId, { command: "VOID" });
  const parked = await booked(batchId, { reversal_state: "parked" });
  await booked(batchId, { reversal_state: "done" });
  await booked(batchId, { state: "ERROR" });
  await booked(batchId, { command: "VOID", state: "ERROR" });
  const refunded = await booked(batchId, { command: "REFUND" });
  await booked(batchId, { command: "REFUND", reversal_state: "done" });
  await booked(newId());
  expect(await settlements.totals(partnerId, batchId)).toEqual({
    currency: "VND",
    saleQuantity: 4,
    saleTotalMinor: 400n,
    voidQuantity: 1,
    voidTotalMinor: 100n,
    refundQuantity: 1,
    refundTotalMinor: 100n,
  });
  const entries = await settlements.entries(partnerId, batchId, null, 100);
  expect(entries.map(({ id, voided: isVoided }) => [id, isVoided])).toEqual([
    [stands, false],
    [completed, false],
    [voided, true],
    [parked, false],
    [refunded, false],
  ]);
  expect((await settlements.counted(partnerId, batchId)).map(({ reqId }) => reqId)).toEqual(
    [stands, completed, parked].map((id) => `r-${id}`),
  );
});

test("a second late answer does not take the place of the one that a batch is in doubt by", async () => {
  const tid = newTid();
  await transactions.begin(sampleInit(partnerId, leaseId, { tid }));
  const { rows } = await connections.pool.query("SELECT batch_id FROM terminals WHERE tid = $1", [tid]);
  const batchId = String(rows[0]?.batch_id);
  const totals = await settlements.totals(partnerId, batchId);
  const late = { batchId, batchNo: "000001", answer: { responseCode: "00", refId: "" }, totals };
  const [first, second] = [newId<"transaction">(), newId<"transaction">()];
  expect(
    await settlements.keepLate(partnerId, tid, { ...late, batchId: newId(), settlementId: first }),
  ).toBeUndefined();
  expect(await settlements.keepLate(partnerId, tid, { ...late, settlementId: first })).toBe("entered");
  expect(await settlements.keepLate(partnerId, tid, { ...late, settlementId: second })).toBeUndefined();
  expect(await settlements.late(partnerId, tid, batchId)).toMatchObject({ settlementId: first });
  expect(await settlements.late(partnerId, tid, newId())).toBeUndefined();
});

test("a late answer closes its batch, and leaves it in doubt if something has entered since, or is just entering", async () => {
  const tids = { still: newTid(), entered: newTid(), entering: newTid() };
  const settle = async (tid: string) => {
    const settlementId = await settling(tid);
    const { rows } = await connections.pool.query("SELECT batch_id FROM terminals WHERE tid = $1", [tid]);
    return { tid, settlementId, batchId: String(rows[0]?.batch_id) };
  };
  const keep = async ({ tid, ...settled }: Awaited<ReturnType<typeof settle>>) => {
    const totals = await settlements.totals(partnerId, settled.batchId);
    const answer = { responseCode: "00", refId: "" };
    return () => settlements.keepLate(partnerId, tid, { ...settled, batchNo: "000001", answer, totals });
  };
  const still = await settle(tids.still);
  const before = await booked(still.batchId);
  const older = "UPDATE transactions SET created_at = now() - interval '1 hour', completed_at = now() WHERE id = $1";
  await connections.pool.query(older, [before]);
  await booked(still.batchId, { state: "ERROR" });
  expect(await (await keep(still))()).toBe("closed");
  const entered = await settle(tids.entered);
  await booked(entered.batchId);
  expect(await (await keep(entered))()).toBe("entered");
  expect(await settlements.late(partnerId, tids.still, still.batchId)).toMatchObject({ state: "closed" });
  expect(await settlements.resolveLate(partnerId, still.settlementId)).toBe(false);
  expect(await settlements.resolveLate(partnerId, newId<"transaction">())).toBe(false);
  expect(await settlements.resolveLate(partnerId, entered.settlementId)).toBe(true);
  const entering = await settle(tids.entering);
  const [answered, other] = [await keep(entering), await connections.pool.connect()];
  onTestFinished(() => other.release(true));
  await other.query("BEGIN");
  await other.query("SELECT FROM terminals WHERE tid = $1 FOR UPDATE", [tids.entering]);
  await booked(entering.batchId, {}, other);
  const kept = answered();
  await lockWaits(connections.pool);
  await other.query("COMMIT");
  expect(await kept).toBe("entered");
});

test("those may be answered whose totals are being sent, and for two days those that ended as ERROR", async () => {
  const tid = newTid();
  const id = await settling(tid);
  const [due] = (await settlements.claimDue(20, heldForMs)).filter((one) => one.tid === tid);
  if (due === undefined) throw new Error("It was due.");
  expect(await settlements.unanswered(tid)).toEqual([]);
  await settlements.advance(due, { ...due, step: "sending" }, heldForMs);
  const { batchId } = due;
  const runs = { partnerId, id, tid, batchId, isUploaded: false, numbers: undefined, totals: undefined };
  expect(await settlements.unanswered(tid)).toEqual([runs]);
  const [aborted, old, totals] = [newId(), newId(), await settlements.totals(partnerId, batchId)];
  const sent = {
    batchId,
    isUploaded: true,
    traceNo: 7,
    atMs: 1_700_000_000_000.5,
    totals: JSON.parse(totalsInJson(totals)),
  };
  const kept = [
    { ...sent, id: aborted, untilMs: Date.now() + heldForMs },
    { ...sent, id: old, untilMs: Date.now() - 1 },
  ];
  const keep = "UPDATE terminals SET unanswered_settlements = $2 WHERE tid = $1";
  await connections.pool.query(keep, [tid, JSON.stringify(kept)]);
  const numbers = { traceNo: "000007", atMs: 1_700_000_000_000 };
  const both = [{ partnerId, id: aborted, tid, batchId, isUploaded: true, numbers, totals }, runs];
  expect(await settlements.unanswered(tid)).toEqual(both);
  expect((await settlements.unanswered("")).filter((one) => one.tid === tid)).toEqual(both);
});

test("a page of uploads goes on behind the last one, and reads no row that was declined", async () => {
  const batchId = newId();
  await connections.pool.query(
    `INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, facts, batch_id, amount_minor,
       currency)
     SELECT $1, ids.id, 'command', 'SALE', CASE WHEN nth % 100 = 0 THEN 'SUCCESS' ELSE 'ERROR' END, ids.id, ids.id,
       '{"fields":{}}', $2, 1, 'VND'
     FROM (SELECT nth, gen_random_uuid() AS id FROM generate_series(1, 20000) AS nth) AS ids`,
    [partnerId, batchId],
  );
  const seen: TransactionId[] = [];
  engine.length = 0;
  for (;;) {
    const page = await settlements.entries(partnerId, batchId, seen.at(-1) ?? null, 60);
    if (page.length === 0) break;
    seen.push(...page.map(({ id }) => id));
  }
  expect(seen).toHaveLength(200);
  expect(seen).toEqual([...new Set(seen)].sort());
  expect(engine.map(({ rowsTouched }) => rowsTouched)).toEqual([60, 60, 60, 20, 0]);
});
