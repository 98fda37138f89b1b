import { afterAll, expect, test, vi } from "vitest";
import { Backpressure } from "../packages/server/src/delivery/limits/backpressure.ts";
import { sale } from "./support/commands.ts";
import { startTestService } from "./support/service.ts";

const asked = vi.spyOn(Backpressure.prototype, "waitForTurn");
const handedOver = vi.spyOn(Backpressure.prototype, "handedOver");
const recorded = vi.spyOn(Backpressure.prototype, "recorded");
const service = await startTestService();
const partner = await service.register();
afterAll(async () => {
  await service.stop();
  vi.restoreAllMocks();
});

const rowsRecorded = () => recorded.mock.calls.reduce((sum, [rows]) => sum + rows, 0);

test("backpressure is asked before intake, and told of each notification and of each recorded outcome", async () => {
  // The shards of a service that has just started may have no owner yet: the first one is found by a sweep.
  await partner.run(sale());
  await partner.server.next(1);
  await expect.poll(rowsRecorded).toBe(1);
  for (const calls of [asked, handedOver, recorded]) calls.mockClear();
  const sales = 5;
  await Promise.all(Array.from({ length: sales }, () => partner.run(sale())));
  expect(asked).toHaveBeenCalled();
  await partner.server.next(sales);
  await expect.poll(rowsRecorded).toBe(sales);
  expect(handedOver).toHaveBeenCalledTimes(sales);
});
