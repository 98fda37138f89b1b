import { expect, test } from "vitest";
import type { NewEvent } from "../events.ts";
import { newId } from "../ids.ts";
import { createLog } from "../log.ts";
import { Comparer, type ComparisonStore } from "./comparer.ts";

test("a difference of a batch that was not read whole says how many transactions were read", async () => {
  const due = [{ partnerId: newId<"partner">(), id: newId<"transaction">() }];
  const ended = Promise.withResolvers<NewEvent | undefined>();
  const comparisons: ComparisonStore = {
    claimDue: async () => due.splice(0),
    read: async () => ({ externalId: "s-1", fields: { saleQuantity: "3", saleTotalAmount: "30" }, isCut: true }),
    end: async (_, event) => {
      ended.resolve(event);
      return true;
    },
  };
  const comparer = new Comparer({
    comparisons,
    directory: { find: async () => undefined },
    metrics: { settlementsCompared: { inc: () => undefined } } as never,
    log: createLog("error", { write: () => undefined }),
  });
  comparer.start();
  comparer.wake();
  expect(await ended.promise).toMatchObject({
    kind: "settlement_differs",
    detail: { externalId: "s-1", transactionsReadMax: 100_000 },
  });
  await comparer.stop();
});
