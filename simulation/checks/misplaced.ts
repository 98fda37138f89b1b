import { originQueue } from "../../packages/server/src/delivery/circuits.ts";
import { registeredQueue, urlOfQueue } from "../../packages/server/src/registered-url.ts";
import { circuitKey } from "../database/circuits.ts";
import type { SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { World } from "../world.ts";

/** Two rounds that look at endpoints which accept nothing, and some seconds. */
const movedWithinMs = 40_000;

/** Invariant 14: nothing waits behind a shut endpoint while another URL is registered for its command. */
export function checkMisplaced(world: World, tables: Tables, nowUs: number): void {
  for (const merchant of tables.merchants) {
    const { state, settings } = merchant.partner;
    if (state !== "active") continue;
    for (const [queue, rows] of tables.pending.queues(merchant.id)) {
      const url = urlOfQueue(settings, queue);
      if (url == null) continue;
      const shutSinceUs = tables.circuits.get(circuitKey(merchant.id, originQueue(url)))?.shutSinceUs ?? nowUs;
      if (nowUs - shutSinceUs < movedWithinMs * 1_000) continue;
      const isMisplaced = (one: SimulatedNotification) =>
        one.changedMs < world.nowMs - movedWithinMs && registeredQueue(settings, one.command) !== queue;
      const left = rows.find(isMisplaced);
      if (left !== undefined) world.violated(14, `${left.id} of ${merchant.id} was left in the queue "${queue}"`);
    }
  }
}
