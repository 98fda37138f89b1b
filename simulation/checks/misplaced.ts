import { originCircuit } from "../../packages/server/src/delivery/circuits.ts";
import { queueOf, urlOfQueue } from "../../packages/server/src/registered-url.ts";
import { circuitKey } from "../database/circuits.ts";
import type { SimulatedNotification } from "../database/notification.ts";
import type { CircuitRow, Tables } from "../database/tables.ts";
import type { World } from "../world.ts";

/** Two rounds that look at endpoints which accept nothing, and some seconds. */
const movedWithinMs = 30_000;

/** Invariant 14: nothing waits behind a shut endpoint while another URL is registered for its command. */
export function checkMisplaced(world: World, tables: Tables, nowUs: number): void {
  for (const merchant of tables.merchants) {
    const { state, settings } = merchant.partner;
    const ownedMs = world.nowMs - (tables.shards[merchant.shard]?.changedMs ?? world.nowMs);
    if (state !== "active" || ownedMs < movedWithinMs) continue;
    for (const [queue, rows] of tables.pending.queues(merchant.id)) {
      const url = urlOfQueue(settings, queue);
      if (url == null) continue;
      const row = tables.circuits.get(circuitKey(merchant.id, originCircuit(url)));
      if (row === undefined || !isShut(row, nowUs)) continue;
      const isMisplaced = (one: SimulatedNotification) =>
        one.changedMs < world.nowMs - movedWithinMs &&
        (one.callBackUrl === null || one.toRegistered) &&
        queueOf(one, settings) !== queue;
      const left = rows.find(isMisplaced);
      if (left !== undefined) world.violated(14, `${left.id} of ${merchant.id} was left in the queue "${queue}"`);
    }
  }
}

/** It waited for its next probe all the time. A probe that is due, but waits for a slot, lets its queue be read. */
function isShut({ circuit, probeAtUs, writtenUs }: CircuitRow, nowUs: number): boolean {
  if (circuit.state === "closed") return false;
  return nowUs - writtenUs >= movedWithinMs * 1_000 && nowUs < (probeAtUs ?? Number.POSITIVE_INFINITY);
}
