import { expect, onTestFinished, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import { lockWaits, loseDeadlock } from "../../../../../test/support/locks.ts";
import { terminalRefusal } from "../../commands/terminal.ts";
import { newId, type TransactionId } from "../../ids.ts";
import type { Init } from "../../ledger/store.ts";
import { watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleFacts, sampleInit } from "../rows.fixture.ts";
import { postgresSettlements } from "../settlements/settlements.ts";
import { PostgresCompletions } from "../transactions/completions.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";
import { postgresReversals } from "./reversals.ts";

const heldForMs = 60_000;
const hourMs = 3_600_000;

const connections = await openTestDatabase();
const engine = watchPlans(connections.engine);
await createHistory(connections.pool);
const reversals = postgresReversals(connections.homes);
const settlements = postgresSettlements(connections.homes);
const transactions = new PostgresTransactions(connections);
const completions = new PostgresCompletions(connections.homes);
const partnerId = await insertPartner(connections.pool);
const leaseId = await insertLease(connections.pool);

/** A Sale that timed out; its Reversal is queued with its result. */
async function timedOut(requestedBy: TransactionId | null = null, tid = "T0000001"): Promise<TransactionId> {
  const init = sampleInit(partnerId, leaseId, { tid });
  await transactions.begin(init);
  await completions.complete({
    partnerId,
    id: init.id,
    leaseId,
    state: "ERROR",
    facts: sampleFacts({ status: "ERROR" }),
    notification: null,
    original: null,
    reversal: { tid: init.tid, requestedBy },
    batch: null,
  });
  return init.id;
}

async function taken(id: TransactionId) {
  const due = await reversals.claimDue(100, heldForMs);
  return due.find(({ transactionId }) => transactionId === id);
}

async function stateOf(id: TransactionId): Promise<string | null | undefined> {
  return (await transactions.find(partnerId, id))?.reversal;
}

test("a Reversal is taken by one, and by another once it was held long enough", async () => {
  const id = await timedOut();
  const now = async () => (await connections.pool.query<{ now: string }>("SELECT now()::text AS now")).rows[0]?.now;
  const before = await now();
  const both = await Promise.all([reversals.claimDue(100, heldForMs), reversals.claimDue(100, heldForMs)]);
  const heldUntil = `SELECT FROM reversals WHERE transaction_id = $1
    AND due_at - interval '1 minute' BETWEEN $2::timestamptz AND $3::timestamptz`;
  expect((await connections.pool.query(heldUntil, [id, before, await now()])).rowCount).toBe(1);
  expect(both.flat()).toMatchObject([{ partnerId, transactionId: id, tries: 1 }]);
  expect(await taken(id)).toBeUndefined();
  const [due] = both.flat();
  if (due === undefined) throw new Error("it was taken");
  await connections.pool.query("UPDATE reversals SET created_at = '2026-11-21Z' WHERE transaction_id = $1", [id]);
  await reversals.postpone(due, 0, "");
  expect(await taken(id)).toMatchObject({ tries: 2, queuedAtMs: Date.parse("2026-11-21T00:00:00Z") });
});

test("a Reversal that another instance is taking at this moment is left to it", async () => {
  const id = await timedOut();
  const other = await connections.pool.connect();
  onTestFinished(() => other.release(true));
  await other.query("BEGIN");
  await other.query("UPDATE reversals SET tries = tries + 1 WHERE transaction_id = $1", [id]);
  expect(await taken(id)).toBeUndefined();
});

test("the one that is due longest is taken first, and not more than are asked for", async () => {
  await connections.pool.query("UPDATE reversals SET due_at = 'infinity'");
  const [later, first] = [await timedOut(), await timedOut()];
  await connections.pool.query("UPDATE reversals SET due_at = now() - interval '1 s' WHERE transaction_id = $1", [
    first,
  ]);
  for (const transactionId of [first, later]) {
    expect(await reversals.claimDue(1, heldForMs)).toEqual([expect.objectContaining({ transactionId })]);
  }
});

test("a 25 is remembered, whatever is answered later", async () => {
  const id = await timedOut();
  for (const [code, lastCode] of [
    ["91", "91"],
    ["", "91"],
    ["25", "25"],
    ["96", "25"],
  ] as const) {
    const due = await taken(id);
    if (due === undefined) throw new Error("it was due");
    await reversals.postpone(due, 0, code);
    expect(await taken(id)).toMatchObject({ lastCode });
    await reversals.repeat(partnerId, id);
  }
});

test("its end is written to the transaction, and names the partner's REVERSAL that waits for it", async () => {
  const waiting = await timedOut();
  const id = await timedOut(waiting);
  const due = await taken(id);
  if (due === undefined) throw new Error("it was due");
  expect(await reversals.end(due, { state: "PARKED", responseCode: "12" })).toEqual({ requestedBy: waiting });
  expect(await stateOf(id)).toBe("parked");
  for (const other of [{ state: "DONE" }, { responseCode: "00" }] as const) {
    expect(await reversals.end(due, { state: "PARKED", responseCode: "12", ...other })).toBeUndefined();
  }
  expect(await stateOf(id)).toBe("parked");
  await reversals.postpone(due, 0, "91");
  await connections.pool.query("UPDATE reversals SET due_at = now() WHERE transaction_id = $1", [id]);
  expect(await taken(id)).toBeUndefined();
  expect(await reversals.retry(partnerId, id, "DONE")).toBe(false);
  expect(await reversals.retry(partnerId, id, "PARKED")).toBe(true);
  expect(await taken(id)).toMatchObject({ lastCode: "12", tries: 3 });
});

/** A Void that timed out: it holds its Sale until its Reversal has ended. */
async function voidInDoubt() {
  const sale = sampleInit(partnerId, leaseId);
  const voiding = { ...sampleInit(partnerId, leaseId), command: "VOID" as const, originalId: sale.id };
  await transactions.begin(sale);
  await transactions.begin(voiding);
  const result = {
    partnerId,
    id: voiding.id,
    leaseId,
    state: "ERROR",
    facts: sampleFacts(),
    notification: null,
  } as const;
  const reversal = { tid: voiding.tid, requestedBy: null };
  await completions.complete({ ...result, original: { id: sale.id, becomes: "in_doubt" }, reversal, batch: null });
  return { sale, voiding };
}

async function rowOf(id: TransactionId) {
  const text = "SELECT state, reversal_state, successor_command, successor_state FROM transactions WHERE id = $1";
  return (await connections.pool.query(text, [id])).rows[0];
}

const park = { state: "PARKED", responseCode: "12" } as const;
const undo = { state: "DONE", responseCode: "00" } as const;
const inDoubt = { successor_command: "VOID", successor_state: "in_doubt" };
const free = { successor_command: null, successor_state: null };
test.each([
  {
    ends: "refused",
    end: park,
    becomes: { state: "ERROR", reversal_state: "parked" },
    holds: inDoubt,
    held: "in_doubt",
  },
  { ends: "done", end: undo, becomes: { state: "ERROR", reversal_state: "done" }, holds: free, held: "done" },
  {
    ends: "resolved",
    decide: reversals.resolve,
    becomes: { state: "ERROR", reversal_state: "done" },
    holds: free,
    held: "done",
  },
  {
    ...{ ends: "left to stand", decide: reversals.letStand, becomes: { state: "SUCCESS", reversal_state: "stands" } },
    ...{ holds: { ...inDoubt, successor_state: "done" }, held: null },
  },
])("what a Void held, and the REVERSAL that holds it, follow its Reversal that is $ends", async (row) => {
  const { end = park, decide, becomes, holds, held } = row;
  const of = (successor: string | null, state: string | null) => ({
    successor_command: successor,
    successor_state: state,
  });
  const { sale, voiding } = await voidInDoubt();
  const hold = `UPDATE transactions SET successor_id = $2, successor_command = $3, successor_state = 'in_flight'
    WHERE id = $1`;
  await connections.pool.query(hold, [voiding.id, newId(), "REVERSAL"]);
  for (const early of [reversals.resolve, reversals.letStand]) expect(await early(partnerId, voiding.id)).toBe(false);
  await reversals.end((await taken(voiding.id)) ?? fail(), end);
  if (decide !== undefined) expect(await decide(partnerId, voiding.id)).toBe(true);
  expect(await rowOf(voiding.id)).toEqual({ ...becomes, ...of(held && "REVERSAL", held) });
  expect(await rowOf(sale.id)).toMatchObject(holds);
});

test.each([
  ["its approval comes late", (id: TransactionId) => reversals.repeat(partnerId, id)],
  ["the operator sends it again", (id: TransactionId) => reversals.retry(partnerId, id, "DONE")],
])("a Void that was reversed holds its original again if %s, unless another holds it by then", async (_, again) => {
  const { sale, voiding } = await voidInDoubt();
  const undone = async () => reversals.end((await taken(voiding.id)) ?? fail(), undo);
  await undone();
  await again(voiding.id);
  expect(await rowOf(sale.id)).toMatchObject(inDoubt);
  await undone();
  expect(await rowOf(sale.id)).toMatchObject(free);
  const second = { ...sampleInit(partnerId, leaseId), command: "VOID" as const, originalId: sale.id };
  await transactions.begin(second);
  await again(voiding.id);
  expect(await rowOf(sale.id)).toMatchObject({ ...inDoubt, successor_state: "in_flight" });
  await undone();
  expect(await rowOf(sale.id)).toMatchObject({ ...inDoubt, successor_state: "in_flight" });
});

test.each([
  ["sent again", "SUCCESS", (id: TransactionId) => reversals.retry(partnerId, id, "PARKED")],
  ["resolved", "SUCCESS", (id: TransactionId) => reversals.resolve(partnerId, id)],
  ["left to stand", "ERROR", (id: TransactionId) => reversals.letStand(partnerId, id)],
])("what counts otherwise once it is %s waits until a settlement has counted its batch", async (_, state, decide) => {
  const id = await timedOut();
  await reversals.end((await taken(id)) ?? fail(), park);
  const succeeded = await connections.pool.query<{ tid: string; batch_id: string }>(
    "UPDATE transactions SET state = $2 WHERE id = $1 RETURNING tid, batch_id",
    [id, state],
  );
  const { tid = "", batch_id: batchId = "" } = succeeded.rows[0] ?? {};
  const begin =
    "INSERT INTO settlements (partner_id, id, kind, tid, batch_id, step) VALUES ($1, $2, 'SETTLEMENT', $3, $4, $5)";
  const sending = await connections.pool.connect();
  onTestFinished(() => sending.release(true));
  for (const step of ["sending", "uploading"]) {
    // Its totals are counted while the decision is under way.
    await sending.query("BEGIN");
    await sending.query("SELECT FROM terminals WHERE partner_id = $1 AND tid = $2 FOR UPDATE", [partnerId, tid]);
    const decided = decide(id);
    await lockWaits(connections.pool);
    await sending.query(begin, [partnerId, newId(), tid, batchId, step]);
    await sending.query("COMMIT");
    const sent = await settlements.totals(partnerId, batchId);
    expect(await decided).toBe(false);
    expect(await stateOf(id)).toBe("parked");
    expect(await settlements.totals(partnerId, batchId)).toEqual(sent);
    await connections.pool.query("DELETE FROM settlements WHERE batch_id = $1", [batchId]);
  }
  await connections.pool.query(begin, [partnerId, newId(), tid, batchId, "waiting"]);
  expect(await decide(id)).toBe(true);
});

test.each([
  ["was reversed", undo, undefined],
  ["version 0.1.0 reversed", undo, "ended_at = NULL"],
  ["the acquirer refuses to reverse", park, undefined],
])("a late approval of a success that %s changes no totals that are with the acquirer", async (_, before, change) => {
  const id = await timedOut();
  await reversals.end((await taken(id)) ?? fail(), before);
  if (change !== undefined)
    await connections.pool.query(`UPDATE reversals SET ${change} WHERE transaction_id = $1`, [id]);
  const batches = await connections.pool.query<{ batch_id: string }>(
    `WITH succeeded AS (UPDATE transactions SET state = 'SUCCESS' WHERE id = $2 RETURNING tid, batch_id)
     INSERT INTO settlements (partner_id, id, kind, tid, batch_id, step)
     SELECT $1, gen_random_uuid(), 'SETTLEMENT', tid, batch_id, 'sending' FROM succeeded RETURNING batch_id`,
    [partnerId, id],
  );
  const { batch_id: batchId = "" } = batches.rows[0] ?? {};
  onTestFinished(
    async () => void (await connections.pool.query("DELETE FROM settlements WHERE batch_id = $1", [batchId])),
  );
  const sent = await settlements.totals(partnerId, batchId);
  for (const after of [park, undo, park]) {
    await reversals.repeat(partnerId, id);
    expect(await settlements.totals(partnerId, batchId)).toEqual(sent);
    const due = await taken(id);
    expect(due === undefined).toBe(before === park);
    expect(await stateOf(id)).toBe(before === park ? "parked" : "pending");
    if (due !== undefined) await reversals.end(due, after);
    expect(await settlements.totals(partnerId, batchId)).toEqual(sent);
    expect(await stateOf(id)).toBe((before === park ? park : after).state.toLowerCase());
  }
  // The acquirer counts it, or the operator waits.
  expect(await reversals.letStand(partnerId, id)).toBe(before === park);
  expect(await settlements.totals(partnerId, batchId)).toEqual(sent);
});

test.each([
  { other: "counts", state: "SUCCESS", reversal: null, stands: "other_currency" },
  { other: "is in flight", state: "INIT", reversal: null, stands: "other_currency" },
  { other: "failed", state: "ERROR", reversal: null, stands: true },
  { other: "is in doubt itself", state: "ERROR", reversal: park, stands: true },
  { other: "was reversed", state: "SUCCESS", reversal: undo, stands: true },
] as const)("what stands brings no second currency into its open batch: the other one $other", async (row) => {
  const tid = `T ${row.other}`;
  const id = await timedOut(null, tid);
  const undone = async (one: TransactionId, ending: typeof park | typeof undo) =>
    reversals.end((await taken(one)) ?? fail(), ending);
  await undone(id, undo);
  const begin = (currency: string, other = newId<"transaction">()) => {
    const asks = { mid: null, entersBatchWith: currency, money: true };
    const refusal: Init["refusal"] = (terminal) => terminal && terminalRefusal(terminal, asks);
    return transactions.begin(sampleInit(partnerId, leaseId, { tid, currency, id: other, refusal }));
  };
  const other = newId<"transaction">();
  await begin("USD", other);
  const end = "UPDATE transactions SET state = $2, completed_at = now() WHERE id = $1";
  await connections.pool.query(end, [other, row.state]);
  if (row.reversal !== null) {
    await reversals.queue(partnerId, other, newId());
    await undone(other, row.reversal);
  }
  await reversals.repeat(partnerId, id);
  await undone(id, park);
  expect(await reversals.letStand(partnerId, id)).toBe(row.stands);
  const refused = { outcome: "refused", refusal: { code: "batch_currency" } };
  if (row.stands === true) {
    expect(await begin("USD")).toMatchObject(refused);
    expect(await begin("VND")).toMatchObject({ outcome: "begun" });
    return;
  }
  expect(await rowOf(id)).toMatchObject({ state: "ERROR", reversal_state: "parked" });
  expect(await begin("VND")).toMatchObject(refused);
  await connections.pool.query("UPDATE terminals SET batch_id = gen_random_uuid() WHERE tid = $1", [tid]);
  expect(await reversals.letStand(partnerId, id)).toBe(true);
});

test.each(["acquirer", "mid"])(
  "what stands enters no open batch of another %s: its terminal has moved since",
  async (of) => {
    const tid = `T other ${of}`;
    const id = await timedOut(null, tid);
    const withMid = `UPDATE transactions SET facts = jsonb_set(facts::jsonb, '{fields,mid}', '"M00000000000001"') WHERE id = $1`;
    await connections.pool.query(withMid, [id]);
    await connections.pool.query(`UPDATE terminals SET ${of} = 'OTHER' WHERE tid = $1`, [tid]);
    await reversals.end((await taken(id)) ?? fail(), park);
    expect(await reversals.letStand(partnerId, id)).toBe("moved");
    expect(await stateOf(id)).toBe("parked");
    await connections.pool.query("UPDATE terminals SET batch_id = gen_random_uuid() WHERE tid = $1", [tid]);
    expect(await reversals.letStand(partnerId, id)).toBe(true);
  },
);

test("what stands is not reversed again, and who else holds it holds it still", async () => {
  const id = await timedOut();
  await reversals.end((await taken(id)) ?? fail(), park);
  const holder = newId();
  await connections.pool.query(
    "UPDATE transactions SET successor_id = $2, successor_command = 'VOID', successor_state = 'in_flight' WHERE id = $1",
    [id, holder],
  );
  await reversals.letStand(partnerId, id);
  const holders = "SELECT successor_id, successor_command, successor_state FROM transactions WHERE id = $1";
  const held = { successor_id: holder, successor_command: "VOID", successor_state: "in_flight" };
  expect((await connections.pool.query(holders, [id])).rows).toEqual([held]);
  await reversals.repeat(partnerId, id);
  await reversals.queue(partnerId, id, newId<"transaction">());
  expect(await taken(id)).toBeUndefined();
  expect(await stateOf(id)).toBe("stands");
});

test("an answer to an earlier try neither ends nor delays what was asked for again since", async () => {
  const id = await timedOut();
  const first = await taken(id);
  if (first === undefined) throw new Error("it was due");
  await reversals.repeat(partnerId, id);
  expect(await reversals.end(first, { state: "DONE", responseCode: "25" })).toBeUndefined();
  await reversals.postpone(first, heldForMs, "");
  const again = await taken(id);
  expect(again).toMatchObject({ tries: 3 });
  if (again === undefined) throw new Error("it was due again");
  const end = { state: "DONE", responseCode: "00" } as const;
  for (let times = 0; times < 2; times += 1) expect(await reversals.end(again, end)).toEqual({ requestedBy: null });
  expect(await reversals.end(first, end)).toBeUndefined();
  expect(await stateOf(id)).toBe("done");
});

test("one that had ended is pending again when a late approval asks for it", async () => {
  const id = await timedOut();
  const due = await taken(id);
  if (due === undefined) throw new Error("it was due");
  await reversals.end(due, { state: "DONE", responseCode: "25" });
  await reversals.repeat(partnerId, id);
  expect(await stateOf(id)).toBe("pending");
  expect(await taken(id)).toMatchObject({ transactionId: id });
});

test("one that is repeated counts from then on how long its original has been under way", async () => {
  const id = await timedOut();
  await connections.pool.query("UPDATE reversals SET left_by = now() - interval '2 hours'");
  expect((await taken(id))?.sinceLeftMs).toBeGreaterThanOrEqual(2 * hourMs);
  await reversals.repeat(partnerId, id);
  expect((await taken(id))?.sinceLeftMs).toBeLessThan(hourMs);
  await connections.pool.query("DELETE FROM reversals WHERE transaction_id = $1", [id]);
  await connections.pool.query("UPDATE transactions SET completed_at = now() - interval '2 hours' WHERE id = $1", [id]);
  await reversals.queue(partnerId, id, newId<"transaction">());
  expect((await taken(id))?.sinceLeftMs).toBeGreaterThanOrEqual(2 * hourMs);
});

test("one that is queued again for the same REVERSAL is not sent again while a try is under way", async () => {
  const [id, reversal, other] = [await timedOut(), newId<"transaction">(), newId<"transaction">()];
  await reversals.queue(partnerId, id, reversal);
  const due = await taken(id);
  if (due === undefined) throw new Error("it was due");
  await reversals.queue(partnerId, id, reversal);
  expect(await taken(id)).toBeUndefined();
  await reversals.queue(partnerId, id, other);
  expect(await taken(id)).toBeDefined();
  expect(await reversals.end(due, { state: "DONE", responseCode: "00" })).toBeUndefined();
});

test.each([
  ["a REVERSAL asks for", (id: TransactionId) => reversals.queue(partnerId, id, newId<"transaction">())],
  ["a late approval asks for", (id: TransactionId) => reversals.repeat(partnerId, id)],
])("one that %s before its first try is first sent as what it is, not as a repeat", async (_, request) => {
  const id = await timedOut();
  await request(id);
  expect(await taken(id)).toMatchObject({ tries: 1 });
});

test("a transaction without a Reversal is not reversed by a late approval alone, nor one in flight by a request", async () => {
  const init = sampleInit(partnerId, leaseId);
  await transactions.begin(init);
  await reversals.repeat(partnerId, init.id);
  await reversals.queue(partnerId, init.id, newId<"transaction">());
  expect(await taken(init.id)).toBeUndefined();
});

test("an end that loses a deadlock is tried again, and none of it is lost", async () => {
  const id = await timedOut();
  const due = await taken(id);
  if (due === undefined) throw new Error("it was due");
  const end = () => reversals.end(due, { state: "DONE", responseCode: "00" });
  const ended = await loseDeadlock(connections.pool, end, {
    table: "reversals",
    locks: [
      `SELECT FROM transactions WHERE id = '${id}' FOR UPDATE`,
      `SELECT FROM reversals WHERE transaction_id = '${id}' FOR UPDATE`,
    ],
  });
  expect(ended).toEqual({ requestedBy: null });
  expect(await stateOf(id)).toBe("done");
});

test("of one that ends again after it was sent once more, the first end is the day of its statement", async () => {
  const endsOf = async (id: TransactionId) => {
    const text = "SELECT ended_at::text AS at FROM reversals WHERE transaction_id = $1";
    return (await connections.pool.query<{ at: string | null }>(text, [id])).rows[0]?.at;
  };
  const id = await timedOut();
  const first = await taken(id);
  if (first === undefined) throw new Error("it was taken");
  await reversals.end(first, { state: "PARKED", responseCode: "12" });
  expect(await endsOf(id)).toBeNull();
  await reversals.resolve(partnerId, id);
  const ended = await endsOf(id);
  expect(ended).not.toBeNull();
  await reversals.retry(partnerId, id, "DONE");
  const again = await taken(id);
  if (again === undefined) throw new Error("it was taken");
  await reversals.end(again, { state: "DONE", responseCode: "00" });
  expect(await endsOf(id)).toBe(ended);
});

test("a transaction is undecided while it is in flight, and until two days after its Reversal is done", async () => {
  const inFlight = sampleInit(partnerId, leaseId);
  await transactions.begin(inFlight);
  const reversed = await timedOut();
  const number = `UPDATE transactions SET facts = jsonb_set(facts::jsonb, '{fields,traceNo}', '"000042"')
    WHERE id = ANY ($1::uuid[])`;
  await connections.pool.query(number, [[inFlight.id, reversed]]);
  const undecided = async (tid: string, traceNo = "000042") =>
    (await reversals.undecided(tid, traceNo)).filter(({ transactionId: id }) => id === inFlight.id || id === reversed);
  const both = [
    { partnerId, transactionId: reversed },
    { partnerId, transactionId: inFlight.id },
  ];
  for (const tid of [inFlight.tid, ""]) expect(await undecided(tid)).toEqual(both);
  expect(await undecided("T9999999")).toEqual([]);
  for (const tid of [inFlight.tid, ""]) expect(await undecided(tid, "000041")).toEqual([]);
  const age = "UPDATE reversals SET created_at = now() - interval '3 days', state = $2 WHERE transaction_id = $1";
  await connections.pool.query(age, [reversed, "PARKED"]);
  expect(await undecided(inFlight.tid)).toHaveLength(2);
  await connections.pool.query(age, [reversed, "DONE"]);
  expect(await undecided(inFlight.tid)).toEqual([{ partnerId, transactionId: inFlight.id }]);
});

test.each(["T0000001", ""])(
  "with 20,000 Reversals an answer of the terminal '%s' reads those with its number",
  async (tid) => {
    // From now on each connection keeps the plan that it made for few rows.
    for (let run = 0; run < 20; run += 1) await reversals.undecided(tid, "000042");
    await connections.pool.query(
      `WITH ids AS MATERIALIZED (SELECT gen_random_uuid() AS id, nth FROM generate_series(100001, 120000) AS nth),
     reversed AS (
       INSERT INTO transactions (partner_id, id, origin, command, state, req_id, chain_id, tid, reversal_state, facts)
       SELECT $1::uuid, id, 'command', 'SALE', 'ERROR', id, id, 'T0000001', 'pending',
         json_build_object('fields', json_build_object('traceNo', nth::text)) FROM ids)
     INSERT INTO reversals (partner_id, transaction_id, tid) SELECT $1::uuid, id, 'T0000001' FROM ids`,
      [partnerId],
    );
    engine.length = 0;
    expect((await reversals.undecided(tid, "100042")).length).toBeGreaterThan(0);
    expect(engine).toHaveLength(1);
    expect(engine[0]?.blocks).toBeLessThan(100);
  },
);

function fail(): never {
  throw new Error("It was due.");
}
