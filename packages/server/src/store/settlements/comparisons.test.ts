import { randomUUID } from "node:crypto";
import type { SettlementEntry } from "@paybell/contract";
import { beforeEach, describe, expect, test } from "vitest";
import { openTestDatabase } from "../../../../../test/support/connections.ts";
import type { HeldTransaction } from "../../commands/reports/settlement-difference.ts";
import { newId, type PartnerId, type TransactionId } from "../../ids.ts";
import type { ComparedSettlement } from "../../ledger/reports/comparer.ts";
import type { ReportedCompletion } from "../../ledger/store.ts";
import { watchPlans } from "../plans.fixture.ts";
import { createHistory, insertLease, insertPartner, sampleFacts, sampleInit, sampleReport } from "../rows.fixture.ts";
import { PostgresCompletions } from "../transactions/completions.ts";
import { PostgresTransactions } from "../transactions/transactions.ts";
import { postgresComparisons } from "./comparisons.ts";

let partnerId: PartnerId;

const connections = await openTestDatabase();
const people = watchPlans(connections.pool);
await createHistory(connections.pool);
// As just after a service started: every table looks empty, and no vacuum corrects it.
await connections.pool.query("ALTER TABLE transactions SET (autovacuum_enabled = off)");
const completions = new PostgresCompletions(connections.homes);
const comparisons = postgresComparisons(connections.homes);

beforeEach(async () => {
  await connections.pool.query("UPDATE transactions SET compare_at = NULL WHERE compare_at IS NOT NULL");
  partnerId = await insertPartner(connections.pool);
});

async function report(change: Partial<ReportedCompletion>): Promise<TransactionId> {
  const sample = sampleReport(partnerId, { reqId: randomUUID(), notification: null, ...change });
  await completions.report(sample);
  return sample.id;
}

interface SettlementGiven {
  readonly state?: ReportedCompletion["state"];
  readonly fields?: Readonly<Record<string, string>>;
  readonly list?: readonly SettlementEntry[];
}

function settle(batchId: string | null, { state = "SUCCESS", fields = {}, list = [] }: SettlementGiven = {}) {
  const facts = { kind: "settlement", command: "SETTLEMENT", fields, settlementList: list } as const;
  return report({ command: "SETTLEMENT", batchId, state, facts });
}

interface ReadBatch {
  readonly compared: ComparedSettlement | undefined;
  readonly held: HeldTransaction[];
  readonly listed: SettlementEntry[];
}

async function read(id: TransactionId, rowsMax = 1_000): Promise<ReadBatch> {
  const [held, listed]: [HeldTransaction[], SettlementEntry[]] = [[], []];
  const into = {
    addTransaction: (row: HeldTransaction) => held.push(row),
    addEntry: (entry: SettlementEntry) => listed.push(entry),
    isAfter: (time: string, than: string) => time > than,
  };
  return { compared: await comparisons.read({ partnerId, id }, into, rowsMax), held, listed };
}

async function heldBy(id: TransactionId): Promise<string[]> {
  return (await read(id)).held.map((row) => row.id).sort();
}

describe("the ledger of a comparison", () => {
  test("is what succeeded in its batch, with all that is compared, and its list as given", async () => {
    const batchId = newId();
    const facts = sampleFacts({ amount: "12.50", refId: "417000000001" });
    const sale = await report({ batchId, facts, externalId: "sale" });
    const reqId = randomUUID();
    const voiding = await report({ batchId, command: "VOID", originalExternalId: "sale", originalId: sale, reqId });
    await report({ batchId, state: "ERROR" });
    await report({ batchId, command: "PREAUTH" });
    await report({ batchId: newId() });
    await report({ batchId: null });
    const list = [{ reqId: "r", refNo: "1" }];
    const id = await settle(batchId, { fields: { status: "SUCCESS", saleQuantity: "1" }, list });
    const { compared, held, listed } = await read(id);
    expect(compared).toEqual({
      externalId: expect.any(String),
      fields: { status: "SUCCESS", saleQuantity: "1" },
      isCut: false,
    });
    expect(listed).toEqual(list);
    expect(held).toHaveLength(2);
    expect(held.find((row) => row.id === sale)).toMatchObject({
      command: "SALE",
      externalId: "sale",
      originalId: null,
      originalExternalId: null,
      amount: "12.50",
      refId: "417000000001",
    });
    expect(held.find((row) => row.id === voiding)).toMatchObject({
      command: "VOID",
      originalId: sale,
      originalExternalId: "sale",
      reqId,
    });
  });

  test("is one round of its number: from the settlement before it that succeeded to the one behind it", async () => {
    const batchId = newId();
    const first = await report({ batchId });
    const settled = await settle(batchId);
    const second = await report({ batchId });
    const failed = await settle(batchId, { state: "ERROR" });
    const third = await report({ batchId });
    const settledAgain = await settle(batchId);
    const fourth = await report({ batchId });
    expect(await heldBy(settled)).toEqual([first, second, third].sort());
    expect(await heldBy(failed)).toEqual([second, third].sort());
    expect(await heldBy(settledAgain)).toEqual([second, third, fourth].sort());
  });

  test("is what was reported late, too, unless that says that it happened later", async () => {
    const batchId = newId();
    const at = (time: string) => ({ batchId, facts: sampleFacts({ transDateTime: time }) });
    const early = await report(at("20260301233001"));
    const id = await settle(batchId, { fields: { transaction_time: "20260301233000" } });
    const late = [await report(at("20260301233000")), await report(at(""))];
    await report(at("20260301233001"));
    expect(await heldBy(id)).toEqual([early, ...late].sort());
    const untimed = newId();
    const timeless = await settle(untimed);
    const after = await report({ batchId: untimed, facts: sampleFacts({ transDateTime: "20260301233001" }) });
    expect(await heldBy(timeless)).toEqual([after]);
  });

  test("is what that terminal did here, too, while its open batch has that number", async () => {
    const leaseId = await insertLease(connections.pool);
    const transactions = new PostgresTransactions(connections);
    const tid = `T${newId().slice(-7)}`;
    const begin = async (change = {}) => {
      const init = sampleInit(partnerId, leaseId, { tid, ...change });
      await transactions.begin(init);
      const { id, reqId } = init;
      const facts = sampleFacts({ amount: "5", refId: "9" });
      const nothing = { notification: null, original: null, reversal: null, batch: null };
      await completions.complete({ partnerId, id, leaseId, state: "SUCCESS", facts, ...nothing });
      return { id, reqId };
    };
    const { id, reqId } = await begin();
    const reversed = await begin();
    await connections.pool.query("UPDATE transactions SET reversal_state = 'done' WHERE id = $1", [reversed.id]);
    const fields = { tid, mid: "M00000000000001", batchNo: "000001" };
    const settled = await settle(newId(), { fields });
    const { held } = await read(settled);
    expect(held).toMatchObject([{ id, reqId, command: "SALE", externalId: null, amount: "5", refId: "9" }]);
    expect([(await read(settled, 1)).compared, (await read(settled, 2)).compared]).toMatchObject([
      { isCut: true },
      { isCut: false },
    ]);
    expect(await heldBy(await settle(newId(), { fields: { ...fields, batchNo: "000002" } }))).toEqual([]);
    expect(await heldBy(await settle(newId(), { fields: { ...fields, mid: "M2" } }))).toEqual([]);
  });

  test("is the newest of a batch that has more than are read", async () => {
    const batchId = newId();
    await report({ batchId });
    const newest = [await report({ batchId }), await report({ batchId })];
    const { compared, held } = await read(await settle(batchId), 2);
    expect(compared).toMatchObject({ isCut: true });
    expect(held.map(({ id }) => id as TransactionId).sort()).toEqual(newest.sort());
  });

  test("is read to its end, however many steps that takes", async () => {
    const batchId = newId();
    const id = await settle(batchId);
    await connections.pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, reported_batch)
       SELECT $1, gen_random_uuid(), 'switch', 'SALE', 'SUCCESS', gen_random_uuid(), '{"fields":{}}', $2
       FROM generate_series(1, 1001)`,
      [partnerId, batchId],
    );
    expect((await read(id, 2_000)).held).toHaveLength(1_001);
  });

  test("is found along indexes, however much there is beside it", async () => {
    await connections.pool.query(
      `INSERT INTO transactions (partner_id, id, origin, command, state, chain_id, facts, reported_batch)
       SELECT $1, gen_random_uuid(), 'switch', 'SALE', 'SUCCESS', gen_random_uuid(), '{"fields":{}}', gen_random_uuid()
       FROM generate_series(1, 20000)`,
      [partnerId],
    );
    const batchId = newId();
    const sale = await report({ batchId });
    const id = await settle(batchId);
    people.length = 0;
    expect(await heldBy(id)).toEqual([sale]);
    expect(people.length).toBeGreaterThan(3);
    expect(people.filter(({ rowsTouched, blocks }) => rowsTouched > 20 || blocks > 50)).toEqual([]);
  });

  test("is nothing once the settlement is gone", async () => {
    expect(await read(newId<"transaction">())).toEqual({ compared: undefined, held: [], listed: [] });
  });
});

describe("a settlement that a switch reported", () => {
  const makeDue = () =>
    connections.pool.query("UPDATE transactions SET compare_at = now() WHERE compare_at IS NOT NULL");

  test("is compared ten minutes after it came, when it names a batch; nothing else is", async () => {
    const batchId = newId();
    const ids = [await settle(batchId), await settle(batchId, { state: "ERROR" })];
    await settle(null);
    await report({ batchId });
    expect(await comparisons.claimDue(10, 60_000)).toEqual([]);
    const { rows } = await connections.pool.query(
      `SELECT id, extract(epoch FROM compare_at - created_at)::integer AS seconds FROM transactions
       WHERE compare_at IS NOT NULL ORDER BY id`,
    );
    expect(rows).toEqual(ids.sort().map((id) => ({ id, seconds: 600 })));
  });

  test("is compared after it came along with a report that is a duplicate, too", async () => {
    const duplicate = sampleReport(partnerId, { notification: null });
    await completions.report(duplicate);
    const [, id] = await Promise.all([completions.report(duplicate), settle(newId())]);
    await makeDue();
    expect(await comparisons.claimDue(10, 60_000)).toEqual([{ partnerId, id }]);
  });

  test("is taken by one, and by another when that one is gone", async () => {
    const id = await settle(newId());
    await makeDue();
    const taken = await Promise.all([comparisons.claimDue(10, 60_000), comparisons.claimDue(10, 60_000)]);
    expect(taken.flat()).toEqual([{ partnerId, id }]);
    await makeDue();
    expect(await comparisons.claimDue(10, 60_000)).toEqual([{ partnerId, id }]);
  });

  test("has one event, however often it was compared", async () => {
    const id = await settle(newId());
    await makeDue();
    const event = { kind: "settlement_differs", partnerId, subjectId: id, detail: { nth: 1 } } as const;
    const ended = await Promise.all([1, 2, 3].map(() => comparisons.end({ partnerId, id }, event)));
    expect(ended.filter((isFirst) => isFirst)).toHaveLength(1);
    const { rows } = await connections.pool.query(
      "SELECT kind, detail, alert_due_at FROM events WHERE partner_id = $1 AND subject_id = $2",
      [partnerId, id],
    );
    expect(rows).toEqual([{ kind: "settlement_differs", detail: { nth: 1 }, alert_due_at: null }]);
    await makeDue();
    expect(await comparisons.claimDue(10, 60_000)).toEqual([]);
  });

  test("stays due when its event cannot be written", async () => {
    const id = await settle(newId());
    await makeDue();
    const poisoned = { kind: "settlement_differs", partnerId, subjectId: id, detail: { text: "\0" } } as const;
    await expect(comparisons.end({ partnerId, id }, poisoned)).rejects.toThrow();
    // Its connection is closed, and PostgreSQL rolls back a moment later: until then the row is locked.
    await expect.poll(() => comparisons.claimDue(10, 60_000)).toEqual([{ partnerId, id }]);
  });
});
