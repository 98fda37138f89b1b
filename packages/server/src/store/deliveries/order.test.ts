import { describe, expect, test } from "vitest";
import { outcomeOf } from "../../delivery/delivery.fixture.ts";
import type { Delivery } from "../../delivery/delivery.ts";
import type { Precedence } from "../../delivery/store.ts";
import { type ChainId, newId } from "../../ids.ts";
import { postgresNotifications } from "../notifications/notifications.ts";
import { sampleNotification, sampleReport } from "../rows.fixture.ts";
import { Partitions } from "../schema/partitions.ts";
import { useDeliveries } from "./deliveries.fixture.ts";

const context = useDeliveries();
const { query } = context;

interface Wished {
  readonly command?: "SALE" | "SETTLEMENT";
  readonly batchId?: string | null;
  readonly chainId?: ChainId;
  readonly follows?: boolean;
  readonly settlesBatch?: string | null;
}

/** Completes one, and reads it back as the worker does. */
async function report(wished: Wished = {}): Promise<Delivery> {
  const { partnerId } = context;
  const { batchId = null, command = "SALE", follows = false, settlesBatch = null } = wished;
  const { id, ...rest } = sampleReport(partnerId, { batchId, command });
  const sample = sampleNotification(partnerId, id);
  const chainId = wished.chainId ?? sample.chainId;
  const notification = { ...sample, command, chainId, follows, settlesBatch };
  await context.completions.report({ ...rest, id, chainId, notification });
  return deliveryBy(notification.id);
}

async function deliveryBy(id: string): Promise<Delivery> {
  const found = (await context.read()).due.find((row) => row.id === id)?.delivery;
  if (found === undefined) throw new Error("it is not due");
  return found;
}

async function precedence(delivery: Delivery): Promise<Precedence | undefined> {
  return (await context.deliveries.preceding([delivery]))[0];
}

const waitsFor = async (delivery: Delivery) => (await precedence(delivery))?.after;

async function redeliver(id: Delivery["id"]): Promise<void> {
  const partitions = new Partitions({
    homes: context.connections.homes,
    clock: { nowMs: () => Date.now() },
    historyDays: 90,
    proofDays: 400,
    contents: { isAsCommitted: () => true },
  });
  const notifications = postgresNotifications(context.connections, partitions);
  await notifications.redeliver(context.partnerId, [id], "original");
}

describe("a delivery that follows", () => {
  test.each(["accepted", "parked"] as const)("waits for each earlier one of its chain until it is %s", async (next) => {
    const first = await report();
    const { chainId } = first;
    const second = await report({ chainId, follows: true });
    const third = await report({ chainId, follows: true });
    expect(await waitsFor(third)).toBe(first.id);
    expect(await waitsFor(second)).toBe(first.id);
    await context.deliveries.record(outcomeOf(first, next));
    expect(await waitsFor(second)).toBeUndefined();
    expect(await waitsFor(third)).toBe(second.id);
    await context.deliveries.record(outcomeOf(second, next));
    expect(await waitsFor(third)).toBeUndefined();
  });

  test("waits for one that failed and is due again later", async () => {
    const first = await report();
    const second = await report({ chainId: first.chainId, follows: true });
    await context.deliveries.record(outcomeOf(first, { delayMs: 3_600_000 }));
    expect(await waitsFor(second)).toBe(first.id);
  });

  test("waits for no other chain, for none that came later, and not where its partner wants no order", async () => {
    await report();
    const alone = await report({ follows: true });
    expect(await waitsFor(alone)).toBeUndefined();
    const free = await report({ chainId: alone.chainId });
    expect(await waitsFor(free)).toBeUndefined();
    expect(await waitsFor(alone)).toBeUndefined();
  });

  test("is not held up by an earlier one that is redelivered, whose schedule began later", async () => {
    const first = await report();
    const second = await report({ chainId: first.chainId, follows: true });
    await context.deliveries.record(outcomeOf(first, "parked"));
    await redeliver(first.id);
    expect(await waitsFor(second)).toBeUndefined();
    expect(await waitsFor({ ...(await deliveryBy(first.id)), follows: true })).toBe(second.id);
  });

  test("tells its age since its own commit, by the database's clock", async () => {
    const delivery = await report({ follows: true });
    await query("UPDATE pending SET schedule_start = now() - interval '9 minutes 50 seconds'");
    const ageNow = async () => {
      const [row] = await query("SELECT extract(epoch FROM now() - schedule_start)::float8 * 1000 AS ms FROM pending");
      return Number(row?.["ms"]);
    };
    const before = await ageNow();
    const { ageMs } = (await precedence(delivery)) ?? { ageMs: 0 };
    expect(before).toBeGreaterThanOrEqual(590_000);
    expect(ageMs).toBeGreaterThanOrEqual(before);
    expect(ageMs).toBeLessThanOrEqual(await ageNow());
  });
});

describe("a settlement", () => {
  test.each(["accepted", "parked"] as const)("waits for each of its batch until it is %s", async (next) => {
    const batchId = newId();
    const sales = [await report({ batchId }), await report({ batchId })];
    const settlement = await report({ batchId, settlesBatch: batchId });
    for (const sale of sales) {
      expect(await waitsFor(settlement)).toBe(sale.id);
      await context.deliveries.record(outcomeOf(sale, next));
    }
    expect(await waitsFor(settlement)).toBeUndefined();
  });

  test("waits for no other batch, for none that came later, and not where its partner wants no order", async () => {
    const batchId = newId();
    await report({ batchId: newId() });
    await report();
    const settlement = await report({ batchId, settlesBatch: batchId });
    expect(await waitsFor(settlement)).toBeUndefined();
    await report({ batchId });
    expect(await waitsFor(settlement)).toBeUndefined();
    expect(await waitsFor(await report({ batchId }))).toBeUndefined();
    const settles = { command: "SETTLEMENT", batchId: newId(), settlesBatch: newId() } as const;
    await report(settles);
    expect(await waitsFor(await report({ ...settles, settlesBatch: settles.batchId }))).toBeUndefined();
  });

  test("waits for no redelivery of its batch", async () => {
    const batchId = newId();
    const sale = await report({ batchId });
    await context.deliveries.record(outcomeOf(sale, "parked"));
    const settlement = await report({ batchId, settlesBatch: batchId });
    await redeliver(sale.id);
    expect(await waitsFor(settlement)).toBeUndefined();
  });

  test("is held to the order when it was reported along with a duplicate, too", async () => {
    const { partnerId, completions } = context;
    const batchId = newId();
    const before = sampleReport(partnerId, { batchId });
    await completions.report(before);
    await query("TRUNCATE pending");
    const sale = sampleReport(partnerId, { batchId });
    await Promise.all([completions.report(before), completions.report(sale)]);
    const [, settlement] = await Promise.all([completions.report(before), report({ batchId, settlesBatch: batchId })]);
    expect(await waitsFor(settlement)).toBe(sale.notification?.id);
  });
});

test("answers come in the order of the questions, and none for what is pending no more", async () => {
  const first = await report();
  const second = await report({ chainId: first.chainId, follows: true });
  const gone = await report({ follows: true });
  await context.deliveries.record(outcomeOf(gone, "accepted"));
  const answers = await context.deliveries.preceding([gone, second, first]);
  expect(answers.map((answer) => answer?.after)).toEqual([undefined, first.id, undefined]);
  expect(answers.map((answer) => answer === undefined)).toEqual([true, false, false]);
});
