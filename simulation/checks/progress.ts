import { originCircuit, urlCircuit } from "../../packages/server/src/delivery/circuits.ts";
import { urlOfQueue } from "../../packages/server/src/registered-url.ts";
import { circuitKey } from "../database/circuits.ts";
import type { SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { Merchant } from "../outside/merchant.ts";
import type { World } from "../world.ts";
import type { Checks } from "./checks.ts";

/** Without faults, a sendable delivery starts within this time. */
const startsWithinMs = 10_000;
/** An outcome that no table takes is held for 30 s before its notification is sent again. */
const unstorableMs = 45_000;

/** Invariant 8, checked in calm phases: no partner that could send waits for its next slot. */
export function checkProgress(
  world: World,
  checks: Pick<Checks, "startedMs" | "slotWaitMs">,
  tables: Tables,
  nowUs: number,
  isAway: (merchant: Merchant) => boolean,
): void {
  for (const merchant of tables.merchants) {
    if (merchant.partner.state !== "active" || isAway(merchant)) continue;
    const withinMs = startsWithinMs + checks.slotWaitMs(merchant.id, world.nowMs - startsWithinMs);
    const isOverdue = ({ dueAtUs, changedMs }: SimulatedNotification) =>
      dueAtUs <= nowUs - withinMs * 1_000 && changedMs <= world.nowMs - withinMs;
    if (world.nowMs - (checks.startedMs.get(merchant.id) ?? 0) <= withinMs) continue;
    for (const [queue, rows] of tables.pending.queues(merchant.id)) {
      const stuck = rows.find((one) => isOverdue(one) && mayLeave(world.nowMs, tables, merchant, queue, one));
      if (stuck === undefined) continue;
      world.violated(8, `${stuck.id} of ${merchant.id} "${queue}" may leave, and nothing of its partner has begun`);
    }
  }
}

function mayLeave(
  nowMs: number,
  tables: Tables,
  merchant: Merchant,
  queue: string,
  one: SimulatedNotification,
): boolean {
  if (one.predecessors.some(({ state }) => state === "pending")) return false;
  if (one.starts.some(({ mayRepeat, deadlineMs }) => mayRepeat && nowMs - deadlineMs < unstorableMs)) return false;
  const registered = urlOfQueue(merchant.partner.settings, queue);
  const names = registered == null ? [queue] : [originCircuit(registered), urlCircuit(registered)];
  return names.every((name) => {
    const { circuit } = tables.circuits.get(circuitKey(merchant.id, name)) ?? {};
    return circuit === undefined || circuit.state === "closed";
  });
}
