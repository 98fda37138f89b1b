import { expect, test, vi } from "vitest";
import { newId } from "../../ids.ts";
import type { NewEvent } from "../../telemetry/events.ts";
import { createLog } from "../../telemetry/log.ts";
import { Comparer, type ComparisonStore } from "./comparer.ts";

const settlement = { externalId: "s-1", fields: { saleQuantity: "3", saleTotalAmount: "30" }, isCut: true };

/** Compares as many settlements, which are read like this. */
function compare(settlements: number, read: ComparisonStore["read"]) {
  const due = Array.from({ length: settlements }, () => ({
    partnerId: newId<"partner">(),
    id: newId<"transaction">(),
  }));
  const ended = Promise.withResolvers<NewEvent | undefined>();
  const failed = Promise.withResolvers<void>();
  const comparisons: ComparisonStore = {
    claimDue: async () => due.splice(0, 1),
    read,
    end: async (_, event) => {
      ended.resolve(event);
      return true;
    },
  };
  const comparer = new Comparer({
    comparisons,
    directory: { find: async () => undefined },
    metrics: { settlementsCompared: { inc: () => undefined } } as never,
    log: createLog("error", { write: () => failed.resolve() }),
  });
  comparer.start();
  comparer.wake();
  return { comparer, ended: ended.promise, failed: failed.promise };
}

test("a difference of a batch that was not read whole says how many transactions were read", async () => {
  const { comparer, ended } = compare(1, async () => settlement);
  expect(await ended).toMatchObject({
    kind: "settlement_differs",
    detail: { externalId: "s-1", transactionsReadMax: 100_000 },
  });
  await comparer.stop();
});

test("a comparison that fails keeps none after it from being made", async () => {
  const read = vi.fn<ComparisonStore["read"]>().mockResolvedValue(settlement);
  read.mockRejectedValueOnce(new Error("the database is away"));
  const { comparer, ended, failed } = compare(2, read);
  await failed;
  comparer.wake();
  expect(await ended).toMatchObject({ kind: "settlement_differs" });
  await comparer.stop();
});
