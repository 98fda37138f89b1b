import { originCircuit, urlCircuit } from "../../packages/server/src/delivery/circuit.ts";
import { callbackUrlOf, urlOfQueue } from "../../packages/server/src/registered-url.ts";
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
/** Two rounds that scan the queues which are not read, and some seconds. */
const scannedWithinMs = 30_000;

/**
 * Invariant 8, checked in calm phases: no partner that could send waits for its next slot.
 *
 * @param mayRest whether a delivery may still rest since the storm
 */
export function checkProgress(
  world: World,
  checks: Pick<Checks, "startedMs" | "slotWaitMs" | "rests">,
  tables: Tables,
  nowUs: number,
  isAway: (merchant: Merchant) => boolean,
  mayRest: boolean,
): void {
  for (const merchant of tables.merchants) {
    if (merchant.partner.state !== "active" || isAway(merchant)) continue;
    const withinMs = startsWithinMs + checks.slotWaitMs(merchant.id, world.nowMs - startsWithinMs);
    if (world.nowMs - (checks.startedMs.get(merchant.id) ?? 0) <= withinMs) continue;
    for (const [queue, rows] of tables.pending.queues(merchant.id)) {
      if (!isClosed(tables, merchant, queueUrl(merchant, queue))) continue;
      const stuck = rows.find(
        (one) =>
          isDue(one, world, nowUs, withinMs) &&
          mayLeave(world, tables, merchant, one) &&
          !(mayRest && checks.rests(merchant.id, one.id)),
      );
      if (stuck === undefined) continue;
      world.violated(8, `${stuck.id} of ${merchant.id} "${queue}" may leave, and nothing of its partner has begun`);
    }
  }
}

/** Invariant 14: nothing whose own URL accepts waits behind the endpoint of its queue, which does not. */
export function checkBehindBlocked(
  world: World,
  checks: Pick<Checks, "startedMs" | "slotWaitMs">,
  tables: Tables,
  nowUs: number,
): void {
  for (const merchant of tables.merchants) {
    const ownedMs = world.nowMs - (tables.shards[merchant.shard]?.changedMs ?? world.nowMs);
    const withinMs = scannedWithinMs + checks.slotWaitMs(merchant.id, world.nowMs - scannedWithinMs);
    if (merchant.partner.state !== "active" || ownedMs < scannedWithinMs) continue;
    // A partner with a backlog has its turns: which of its queues comes first is no matter of a circuit.
    if (world.nowMs - (checks.startedMs.get(merchant.id) ?? 0) <= withinMs) continue;
    for (const [queue, rows] of tables.pending.queues(merchant.id)) {
      const name = originCircuit(queueUrl(merchant, queue));
      const { circuit, probeAtUs, writtenUs = nowUs } = tables.circuits.get(circuitKey(merchant.id, name)) ?? {};
      // A probe that is due, but waits for a slot, lets its queue be read.
      const isBlocked = circuit?.state === "open" && nowUs < (probeAtUs ?? Number.POSITIVE_INFINITY);
      if (!isBlocked || nowUs - writtenUs < scannedWithinMs * 1_000) continue;
      const left = rows.find((one) => isDue(one, world, nowUs, withinMs) && mayLeave(world, tables, merchant, one));
      if (left !== undefined) world.violated(14, `${left.id} of ${merchant.id} was left in the queue "${queue}"`);
    }
  }
}

function isDue({ dueAtUs, changedMs }: SimulatedNotification, world: World, nowUs: number, sinceMs: number): boolean {
  return dueAtUs <= nowUs - sinceMs * 1_000 && changedMs <= world.nowMs - sinceMs;
}

/** The URL that a queue is named for. */
function queueUrl({ partner }: Merchant, queue: string): string {
  return urlOfQueue(partner.settings, queue) ?? queue;
}

/** Nothing but its worker keeps it: its URL accepts, and nothing leaves before it. */
function mayLeave({ nowMs }: World, tables: Tables, merchant: Merchant, one: SimulatedNotification): boolean {
  if (one.predecessors.some(({ state }) => state === "pending")) return false;
  if (one.starts.some(({ mayRepeat, deadlineMs }) => mayRepeat && nowMs - deadlineMs < unstorableMs)) return false;
  const url = callbackUrlOf(one, merchant.partner.settings);
  return url !== null && isClosed(tables, merchant, url);
}

function isClosed(tables: Tables, merchant: Merchant, url: string): boolean {
  return [originCircuit(url), urlCircuit(url)].every((name) => {
    const { circuit } = tables.circuits.get(circuitKey(merchant.id, name)) ?? {};
    return circuit === undefined || circuit.state === "closed";
  });
}
