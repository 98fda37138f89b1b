import fc from "fast-check";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { createDatabase, type TestDatabase } from "../../../../test/support/database.ts";
import type { Claimed, ClaimLimits, Outcome } from "../delivery/store.ts";
import { newId, type PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { PostgresCompletions } from "./completions.ts";
import { type Database, openDatabase } from "./database.ts";
import { PostgresDeliveries } from "./deliveries.ts";
import { PostgresNotifications } from "./notifications.ts";
import { Partitions } from "./partitions.ts";
import { createHistory, insertInstance, insertPartner, sampleNotification, sampleReport } from "./rows.fixture.ts";

let database: TestDatabase;
let connections: Database;
let completions: PostgresCompletions;
let deliveries: PostgresDeliveries;
let partnerId: PartnerId;
let instance: Instance;

beforeAll(async () => {
  database = await createDatabase();
  connections = openDatabase(database.url, { connectionsMax: 12, onIdleError: () => {} });
  await createHistory(connections.pool);
  completions = new PostgresCompletions(connections.engine, { onDoubtfulReport: () => {} });
  deliveries = new PostgresDeliveries(connections.engine);
});

beforeEach(async () => {
  await connections.pool.query("TRUNCATE pending, parked, instances");
  partnerId = await insertPartner(connections.pool);
  instance = await insertInstance(connections.pool);
});

afterAll(async () => {
  await connections.close();
  await database.drop();
});

const limits: ClaimLimits = { rowsMax: 100, rowsPerPartnerMax: 100, bytesMax: 1e9, without: [], probeLeaseMs: 1_000 };

/** @returns the notification's id */
async function reportSale(batchId: string | null, lease: Instance | null = null): Promise<string> {
  const report = sampleReport(partnerId, lease, { batchId });
  await completions.report(report);
  return report.notification?.id ?? "";
}

async function reportSettlement(batchId: string | null, settlesBatch = batchId): Promise<string> {
  const id = newId<"transaction">();
  const facts = { kind: "settlement", command: "SETTLEMENT", fields: {}, settlementList: [] } as const;
  const sample = sampleNotification(partnerId, id, null);
  const notification = {
    ...sample,
    command: "SETTLEMENT",
    facts,
    content: JSON.stringify(facts),
    settlesBatch,
  } as const;
  await completions.report(sampleReport(partnerId, null, { id, command: "SETTLEMENT", batchId, facts, notification }));
  return notification.id;
}

/** What may leave now; what had to wait a moment ago is looked at again. */
async function claim(): Promise<readonly Claimed[]> {
  await connections.pool.query("UPDATE pending SET due_at = now() WHERE instance_id IS NULL AND due_at < 'infinity'");
  return deliveries.claim(instance, limits);
}

const idsOf = (claimed: readonly Claimed[]) => claimed.map(({ id }) => id as string).sort();

async function end({ id, claimNo }: Pick<Claimed, "id" | "claimNo">, next: Outcome["next"]): Promise<void> {
  const attempt = {
    startedAtMs: Date.now(),
    durationMs: 1,
    url: "https://partner.example/ipn",
    address: null,
    httpStatus: null,
    reason: next.kind === "accepted" ? null : ("timeout" as const),
    detail: null,
    answer: null,
    keyId: null,
  };
  await deliveries.record({ partnerId, id, claimNo, instance, attemptsMade: 1, attempt, next });
}

describe("a settlement that a switch reported", () => {
  test.each(["accepted", "parked"] as const)("leaves once each of its batch is %s", async (kind) => {
    const batch = newId();
    const sales = [await reportSale(batch), await reportSale(batch)];
    const settlement = await reportSettlement(batch);
    const claimed = await claim();
    expect(idsOf(claimed)).toEqual(sales.sort());
    for (const sale of claimed) {
      expect(idsOf(await claim()), "while one is in flight").toEqual([]);
      await end(sale, { kind });
    }
    expect(await claim()).toMatchObject([{ id: settlement, outOfOrder: false }]);
  });

  test("waits for one that is on its way, and for one that failed", async () => {
    const batch = newId();
    const sale = await reportSale(batch, instance);
    const settlement = await reportSettlement(batch);
    expect(await claim()).toEqual([]);
    await end({ id: sale as Claimed["id"], claimNo: 1 }, { kind: "retry", delayMs: 3_600_000 });
    await connections.pool.query("UPDATE pending SET due_at = 'infinity' WHERE id = $1", [sale]);
    expect(await claim()).toEqual([]);
    await connections.pool.query("DELETE FROM pending WHERE id = $1", [sale]);
    expect(idsOf(await claim())).toEqual([settlement]);
  });

  test("waits for no other batch, for none that came later, and holds up nothing", async () => {
    const batch = newId();
    await reportSale(newId(), instance);
    await reportSale(null, instance);
    const settlement = await reportSettlement(batch);
    const late = await reportSale(batch);
    expect(idsOf(await claim())).toEqual([settlement, late].sort());
    const again = await reportSale(batch);
    expect(idsOf(await claim())).toEqual([again]);
  });

  test("waits for nothing where its partner wants no order", async () => {
    const batch = newId();
    await reportSale(batch, instance);
    const settlement = await reportSettlement(batch, null);
    expect(idsOf(await claim())).toEqual([settlement]);
  });

  test("leaves ten minutes after its own commit, and tells that it is out of order", async () => {
    const batch = newId();
    await reportSale(batch, instance);
    const settlement = await reportSettlement(batch);
    const older = "UPDATE pending SET schedule_start = schedule_start - $1::interval";
    await connections.pool.query(older, ["9 minutes 50 seconds"]);
    expect(await claim()).toEqual([]);
    await connections.pool.query(older, ["10 seconds"]);
    expect(await claim()).toMatchObject([{ id: settlement, outOfOrder: true }]);
  });

  test("waits for no redelivery of its batch", async () => {
    const batch = newId();
    const sale = await reportSale(batch);
    const [claimed] = await claim();
    await end(claimed ?? fail(), { kind: "parked" });
    const settlement = await reportSettlement(batch);
    const partitions = new Partitions({ pool: connections.pool, clock: { nowMs: () => Date.now() }, historyDays: 90 });
    const notifications = new PostgresNotifications(connections.pool, partitions);
    await notifications.redeliver(partnerId, [sale as Claimed["id"]], "original");
    expect(idsOf(await claim())).toEqual([sale, settlement].sort());
  });

  test("is held to the order when it was reported along with a duplicate, too", async () => {
    const batch = newId();
    const before = sampleReport(partnerId, null, { batchId: batch });
    await completions.report(before);
    await connections.pool.query("TRUNCATE pending");
    const sale = sampleReport(partnerId, instance, { batchId: batch });
    await Promise.all([completions.report(before), completions.report(sale)]);
    await Promise.all([completions.report(before), reportSettlement(batch)]);
    expect(await claim()).toEqual([]);
    await connections.pool.query("DELETE FROM pending WHERE id = $1", [sale.notification?.id]);
    expect(await claim()).toHaveLength(1);
  });
});

const batchOf = fc.nat(2);
const op = fc.oneof(
  { weight: 4, arbitrary: fc.record({ kind: fc.constant("sale" as const), batch: batchOf }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant("settlement" as const), batch: batchOf }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constantFrom("accepted" as const, "parked" as const), nth: fc.nat(9) }),
  },
);

test("whatever comes, a claim takes all but settlements behind a pending one of their batch", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(op, { minLength: 3, maxLength: 20 }), async (ops) => {
      await connections.pool.query("TRUNCATE pending, parked");
      const batches = [newId(), newId(), newId()];
      let waiting: { id: string; batch: number; settles: boolean }[] = [];
      let held: { claimed: Claimed; batch: number; settles: boolean }[] = [];
      for (const one of ops) {
        if ("batch" in one) {
          const settles = one.kind === "settlement";
          const id = await (settles ? reportSettlement : reportSale)(batches[one.batch] ?? null);
          waiting.push({ id, batch: one.batch, settles });
        } else {
          const [ended] = held.splice(one.nth % Math.max(1, held.length), 1);
          if (ended) await end(ended.claimed, { kind: one.kind });
        }
        // In the order of their coming: a Sale behind the settlement is not of those that it waits for.
        const isHeld = ({ id, batch, settles }: (typeof waiting)[number]) =>
          settles && held.some((other) => !other.settles && other.batch === batch && other.claimed.id < id);
        const claimed = new Map((await claim()).map((row) => [row.id as string, row]));
        expect([...claimed.keys()].sort()).toEqual(
          waiting
            .filter((row) => !isHeld(row))
            .map(({ id }) => id)
            .sort(),
        );
        held = held.concat(
          waiting.flatMap(({ id, ...row }) => {
            const taken = claimed.get(id);
            return taken ? [{ claimed: taken, ...row }] : [];
          }),
        );
        waiting = waiting.filter(({ id }) => !claimed.has(id));
      }
    }),
    { numRuns: 40 },
  );
});

function fail(): never {
  throw new Error("It was due.");
}

test("what must wait hides nothing: it is put off by a tenth of its age, and the claim comes again", async () => {
  let woken = 0;
  const waking = new PostgresDeliveries(connections.engine, { onSetAside: () => (woken += 1) });
  const batch = newId();
  await reportSale(batch, instance);
  const blocked = [await reportSettlement(batch), await reportSettlement(batch), await reportSettlement(batch)];
  await connections.pool.query(
    "UPDATE pending SET schedule_start = schedule_start - interval '100 s', due_at = now() - interval '9 s'",
  );
  const free = await reportSale(null);
  const narrow = { ...limits, rowsPerPartnerMax: 3 };
  expect(await waking.claim(instance, narrow)).toEqual([]);
  expect(woken).toBe(1);
  expect(idsOf(await waking.claim(instance, narrow))).toEqual([free]);
  expect(woken).toBe(1);
  const { rows } = await connections.pool.query<{ id: string; off: number }>(
    "SELECT id, extract(epoch FROM due_at - now())::float AS off FROM pending WHERE settles_batch IS NOT NULL",
  );
  expect(rows.map(({ id }) => id).sort()).toEqual(blocked.sort());
  for (const { off } of rows) expect(off).toBeGreaterThan(5);
  for (const { off } of rows) expect(off).toBeLessThan(11);
});
