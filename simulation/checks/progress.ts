import { originCircuit, urlCircuit } from "../../packages/server/src/delivery/limits/circuits.ts";
import type { Queue } from "../../packages/server/src/delivery/queues/queue.ts";
import type { Hint, QueueRead } from "../../packages/server/src/delivery/store.ts";
import { callbackUrlOf, urlOfQueue } from "../../packages/server/src/notification.ts";
import type { Observed, SimulationContext } from "../context.ts";
import type { SimulatedNotification, Tables } from "../database/tables.ts";
import { circuitKey } from "../database/tables.ts";
import type { Merchant } from "../outside/merchant.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";
import { OfInstance } from "./starts.ts";

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
  { world, checks, tables, database }: SimulationContext,
  isAway: (merchant: Merchant) => boolean,
  mayRest: boolean,
): void {
  const nowUs = database.nowUs();
  for (const merchant of tables.merchants) {
    if (merchant.partner.state !== "active" || isAway(merchant)) continue;
    const withinMs = startsWithinMs + checks.slotWaitMs(merchant.id, world.nowMs - startsWithinMs);
    if (world.nowMs - (checks.starts.startedMs.get(merchant.id) ?? 0) <= withinMs) continue;
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
export function checkBehindBlocked({ world, checks, tables, database }: SimulationContext): void {
  const nowUs = database.nowUs();
  for (const merchant of tables.merchants) {
    const ownedMs = world.nowMs - (tables.shards[merchant.shard]?.changedMs ?? world.nowMs);
    const withinMs = scannedWithinMs + checks.slotWaitMs(merchant.id, world.nowMs - scannedWithinMs);
    if (merchant.partner.state !== "active" || ownedMs < scannedWithinMs) continue;
    // A partner with a backlog has its turns: which of its queues comes first is no matter of a circuit.
    if (world.nowMs - (checks.starts.startedMs.get(merchant.id) ?? 0) <= withinMs) continue;
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

interface Moment {
  readonly worldMs: number;
  readonly databaseUs: number;
}

/** A timer and a turn of the event loop. */
const settledMs = 20;

/** Invariant 11: a queue that calls itself complete has every row that it was notified of, or that a read could see. */
export function completenessCheck({ world, tables, database }: Observed) {
  /** The last read from a queue's head, by worker, epoch and queue. */
  const readsOf = new OfInstance(() => new Map<string, Moment>());

  function readBegins(worker: Instance, reads: readonly QueueRead[]): void {
    const begun = readsOf.get(worker);
    for (const { partnerId, queue, after } of reads) {
      const epoch = worker.worker.ownership.epochOf(partnerId);
      if (after === undefined && epoch !== undefined) {
        begun.set(`${epoch} ${partnerId} ${queue}`, {
          worldMs: world.nowMs,
          databaseUs: database.nowUs(),
        });
      }
    }
  }

  function notified(worker: Instance, one: SimulatedNotification): void {
    const epoch = worker.worker.ownership.epochOf(one.partnerId);
    const isDue = one.dueAtUs <= database.nowUs();
    if (epoch !== undefined && isDue) one.notified = { worker: worker.name, epoch, atMs: world.nowMs };
  }

  /** Only the rows of that time are considered: a queue may have many thousands, and be named at every step. */
  function woken(worker: Instance, { partnerId, queue = "", sinceMs = 0 }: Hint): void {
    const { pending } = tables;
    const rows = pending.queue(partnerId, queue);
    const nowUs = database.nowUs();
    for (let at = pending.firstDue(rows, sinceMs * 1_000); at < rows.length; at += 1) {
      const one = rows[at];
      if (one === undefined || one.dueAtUs > nowUs) break;
      notified(worker, one);
    }
  }

  function check(worker: Instance): void {
    const { queues, ownership } = worker.worker;
    for (const partnerId of queues.partners()) {
      const epoch = ownership.epochOf(partnerId);
      if (epoch === undefined) continue;
      for (const queue of queues.queuesOf(partnerId)) {
        if (!queue.hasMore && !queue.isReading) checkQueue(worker, queue, epoch);
      }
    }
  }

  function checkQueue(worker: Instance, queue: Queue, epoch: number): void {
    const { partnerId, name, nextDueMs } = queue;
    // It is about to read.
    if (nextDueMs !== undefined && nextDueMs <= worker.loop.clock.monotonicMs()) return;
    const read = readsOf.get(worker).get(`${epoch} ${partnerId} ${name}`);
    const { queues } = worker.worker;
    const isInHand = ({ id }: SimulatedNotification) =>
      queues.rests(id) || queues.queuesOf(partnerId).some((one) => one.has(id));
    for (const one of tables.pending.queue(partnerId, name)) {
      if (one.dueAtUs > database.nowUs() - settledMs * 1_000) break;
      if (isInHand(one) || one.changedMs > world.nowMs - settledMs) continue;
      // A row that was due before the database's clock stepped back is due again later, and only the sweep finds it.
      const sinceMs = Math.max(one.changedMs, database.steppedMs);
      const { notified } = one;
      const isNotified = notified?.worker === worker.name && notified.epoch === epoch && notified.atMs >= sinceMs;
      const isRead = read !== undefined && read.worldMs >= sinceMs && read.databaseUs >= one.dueAtUs;
      if (!isNotified && !isRead) continue;
      world.violated(11, `${worker.name} holds ${partnerId} "${name}" for complete without ${one.id}`);
    }
  }

  return { readBegins, notified, woken, check };
}
