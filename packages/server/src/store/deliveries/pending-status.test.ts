import { expect, test } from "vitest";
import type { Delivery } from "../../delivery/delivery.ts";
import { idTimeMs, type PartnerId } from "../../ids.ts";
import { insertPartner } from "../rows.fixture.ts";
import { useDeliveries } from "./deliveries.fixture.ts";
import { PendingStatus } from "./pending-status.ts";

const context = useDeliveries();

async function parkAll(partnerId: PartnerId): Promise<void> {
  const { due } = await context.read({ partnerId });
  await context.deliveries.park(
    due.map(({ delivery }) => delivery as Delivery),
    "timeout",
  );
}

const oldestMs = async (partnerId: PartnerId): Promise<number> => {
  const [row] = await context.query("SELECT id FROM pending WHERE partner_id = $1 ORDER BY id", [partnerId]);
  return idTimeMs(String(row?.["id"]));
};

test("pending and parked ones are counted, together and by partner: the one that waits longest is first", async () => {
  const { partnerId: parkedToo, report, connections } = context;
  const [longest, onlyParked] = [await insertPartner(connections.pool), await insertPartner(connections.pool)];
  await report(1, { partnerId: parkedToo });
  await parkAll(parkedToo);
  await report(2, { partnerId: onlyParked });
  await parkAll(onlyParked);
  await report(1, { partnerId: longest });
  await report(2, { partnerId: parkedToo });
  await insertPartner(connections.pool);

  const status = new PendingStatus(connections);
  const [first, second] = [await oldestMs(longest), await oldestMs(parkedToo)];
  const all = [
    { partnerId: longest, pending: 1, parked: 0, oldestMs: first },
    { partnerId: parkedToo, pending: 2, parked: 1, oldestMs: second },
    { partnerId: onlyParked, pending: 0, parked: 2, oldestMs: undefined },
  ];
  expect(await status.byPartner(10)).toEqual(all);
  expect(await status.byPartner(2)).toEqual(all.slice(0, 2));
  expect(await status.count()).toEqual({ count: 3, parked: 3, oldestMs: first });
});

test("nothing is pending in a new database, and every shard is free", async () => {
  const status = new PendingStatus(context.connections);
  expect(await status.count()).toEqual({ count: 0, parked: 0, oldestMs: undefined });
  expect(await status.byPartner(10)).toEqual([]);
  expect(await status.unownedShards()).toHaveLength(256);
});
