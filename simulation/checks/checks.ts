import { jitter } from "../../packages/server/src/delivery/attempt/schedule.ts";
import { mayAskToWait } from "../../packages/server/src/delivery/attempt/status.ts";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { LoadedCircuit } from "../../packages/server/src/delivery/limits/circuits.ts";
import type { DeliveryOutcome, Hint, QueueRead, Recorded } from "../../packages/server/src/delivery/store.ts";
import type { OwnedShard } from "../../packages/server/src/delivery/worker/ownership.ts";
import { type LeaseId, type NotificationId, type PartnerId, shardOf } from "../../packages/server/src/ids.ts";
import type { Observed, SimulationContext } from "../context.ts";
import type { ShardRow, SimulatedNotification } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";
import { completenessCheck } from "./progress.ts";
import { OfInstance, startChecks } from "./starts.ts";

/** Steps between two checks of what is not checked where it happens. */
const boundsEvery = 16;
const believersEvery = 64;
const completeEvery = 256;

export type Checks = ReturnType<typeof checksOf>;

/** The invariants: reported events are checked at once, the rest every few steps. */
export function checksOf(seen: Observed) {
  const { world, plan, tables, instances } = seen;
  const starts = startChecks(seen);
  const readCounts = readsCheck(world);
  const sweeps = sweepsCheck(world);
  const complete = completenessCheck(seen);

  /** The time until an attempt ends, if the partner's owner had no free slot since then; otherwise 0. */
  function slotWaitMs(partnerId: PartnerId, sinceMs: number): number {
    const owner = ownerOf(partnerId);
    return owner !== undefined && starts.fullMs(owner) >= sinceMs ? plan.attemptTimeoutMs : 0;
  }

  function rests(partnerId: PartnerId, id: NotificationId): boolean {
    return ownerOf(partnerId)?.worker.queues.rests(id) ?? false;
  }

  function ownerOf(partnerId: PartnerId): Instance | undefined {
    return [...instances].find(({ worker }) => worker.ownership.epochOf(partnerId) !== undefined);
  }

  function afterStep(): void {
    const { steps } = world;
    if (steps % boundsEvery === 0) for (const worker of instances) checkBounds(seen, worker);
    if (steps % believersEvery === 0) checkBelievers(seen);
    if (steps % completeEvery === 0) for (const worker of instances) complete.check(worker);
  }

  function attemptBegins(worker: Instance, delivery: Delivery, url: string, isRegistered: boolean): void {
    starts.attemptBegins(worker, delivery, url, isRegistered);
    readCounts.begins(worker, delivery.partnerId);
  }

  /** It is not sent, and rests like one whose outcome could not be stored. */
  function unhandled({ id, round, attemptsMade }: Delivery): void {
    const rest = { deadlineMs: world.nowMs, isEnded: true, mayRepeat: true };
    const start = { round, attemptsMade, leaseId: "" as never, epoch: undefined, ...rest };
    tables.notifications.get(id)?.starts.push(start);
  }

  function circuitsLoaded(worker: Instance, loaded: readonly LoadedCircuit[]): void {
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      world.note(worker.name, "loads", partnerId, queue, circuit.state, circuit.probeInMs ?? "", controlNo);
    }
    const { shards } = tables;
    starts.circuits.get(worker).loaded(loaded, (id) => shards[shardOf(id)]?.epoch ?? 0);
  }

  /** An outcome is on its way to the database. */
  async function recorded(worker: Instance, outcome: DeliveryOutcome, recording: Promise<Recorded>): Promise<Recorded> {
    const known = starts.circuits.get(worker);
    for (const change of outcome.circuits) {
      const { state, probeInMs } = change.circuit;
      world.note(worker.name, "changes", change.partnerId, change.queue, state, probeInMs ?? "", change.controlNo);
      known.changed(change);
    }
    try {
      const recorded = await recording;
      world.note(worker.name, "recorded", outcome.id, outcome.next.kind, recorded);
      return recorded;
    } catch (error) {
      world.note(worker.name, "could not record", outcome.id);
      for (const change of outcome.circuits) known.withdrawn(change);
      for (const start of tables.notifications.get(outcome.id)?.starts ?? []) start.mayRepeat = true;
      throw error;
    }
  }

  /** Invariants 1, 9 and 20: asked of every outcome that changes a row, as it is committed. */
  function applied(outcome: DeliveryOutcome, before: SimulatedNotification, one: SimulatedNotification): void {
    const { id, round, attemptsMade, next } = outcome;
    const isLater = before.round > round || (next.kind !== "accepted" && before.attemptsMade !== attemptsMade);
    if (isLater) world.violated(9, `an outcome of ${id}, round ${round}, attempt ${attemptsMade}, changes a later one`);
    if (next.kind === "accepted" && !one.acceptedRounds.has(round)) {
      world.violated(1, `${id} ends as accepted, and nobody accepted it in round ${round}`);
    }
    if (next.kind === "retry") checkStep(outcome, next.delayMs, before, one);
  }

  /** An attempt that a person asked for is no step of the schedule, unless it was read before that. */
  function checkStep(
    outcome: DeliveryOutcome,
    delayMs: number,
    before: SimulatedNotification,
    one: SimulatedNotification,
  ) {
    const { id, attempt } = outcome;
    const steps = tables.merchantOf(one.partnerId)?.partner.settings.retry ?? [];
    const made = before.attemptsMade + 1 - one.sentNow;
    if (before.asked < (outcome.asked ?? 0)) one.sentNow += 1;
    const stepS = steps[Math.max(1, made) - 1] ?? 0;
    if (made >= steps.length || mayAskToWait(attempt.httpStatus ?? 0) || delayMs <= stepS * 1_000 * (1 + jitter))
      return;
    world.violated(20, `${id} waits ${delayMs} ms after ${made} steps, of which the last is ${stepS} s`);
  }

  /** Invariant 16. */
  function releases(worker: Instance, shards: readonly OwnedShard[]): void {
    if (worker.isOutOfTime) return;
    const outcomes = worker.outcomes.flatMap(({ unwritten }) => [...unwritten]);
    for (const { shard, epoch } of shards) {
      const unrecorded = outcomes.filter(
        ({ partnerId, leaseId }) => shardOf(partnerId) === shard && leaseId === worker.lease.current(),
      );
      const attempts = starts.underWayOfShard(worker, shard, epoch);
      if (attempts + unrecorded.length === 0) continue;
      const left = `${attempts} attempts on the wire and ${unrecorded.length} unrecorded outcomes`;
      world.violated(16, `${worker.name} gives up its shard ${shard} with ${left}, although it has time for them`);
    }
  }

  function readBegins(worker: Instance, reads: readonly QueueRead[]): void {
    for (const read of reads) {
      const { partnerId, queue, after } = read;
      readCounts.count(worker, read);
      world.note(worker.name, "reads", partnerId, queue, after === undefined ? "from the head" : after.id);
    }
    complete.readBegins(worker, reads);
  }

  function offered(worker: Instance, one: SimulatedNotification): void {
    world.note(worker.name, "is offered", one.id);
    complete.notified(worker, one);
  }

  function woken(worker: Instance, hint: Hint): void {
    world.note(worker.name, "is woken", hint.partnerId, hint.queue ?? "");
    complete.woken(worker, hint);
  }

  return {
    starts,
    sweeps,
    slotWaitMs,
    rests,
    afterStep,
    attemptBegins,
    unhandled,
    circuitsLoaded,
    recorded,
    applied,
    releases,
    readBegins,
    offered,
    woken,
  };
}

const rowsPerSlot = 8;
const rowsPerQueueMin = 4;
const unrecordedPerSlot = 4;
/** The size of one page, or of one row, which comes whatever its size. */
const pageBytesMax = 4 * 1_024 * 1_024;

/** Invariant 10: a worker's memory stays within its bounds, and nothing in it waits for a partner that is paused. */
function checkBounds({ world, plan }: Observed, { name, worker, partners }: Instance): void {
  const { slots, bytes, rows, rowsBytes, unrecorded } = worker.status;
  const { slotsMax, bytesInFlightMax, merchants } = plan;
  const bounds = [
    ["slots", slots, slotsMax],
    ["bytes", bytes, bytesInFlightMax],
    ["rows", rows, 2 * slotsMax * rowsPerSlot + rowsPerQueueMin + merchants],
    ["bytes in rows", rowsBytes, 2 * bytesInFlightMax + (1 + merchants) * pageBytesMax],
    ["unrecorded outcomes", unrecorded, slotsMax * (unrecordedPerSlot + 1)],
  ] as const;
  for (const [what, is, most] of bounds) {
    if (is < 0 || is > most) world.violated(10, `${name} has ${is} ${what}, and ${most} at most are agreed`);
  }
  for (const partnerId of worker.queues.partners().filter((id) => partners.isPaused(id))) {
    const waits = worker.queues.queuesOf(partnerId).find(({ head }) => head !== undefined);
    if (waits !== undefined) world.violated(10, `${name} keeps deliveries of ${partnerId}, which is paused`);
  }
}

/** Invariant 4: at most one believing owner for each shard. */
function checkBelievers({ world, tables, instances }: Observed): void {
  for (const { id, shard } of tables.merchants) {
    const believers = [...instances].filter(({ worker }) => worker.ownership.epochOf(id) !== undefined);
    if (believers.length <= 1) continue;
    world.violated(4, `shard ${shard} is believed to be theirs by ${believers.map(({ name }) => name).join(" and ")}`);
  }
}

/** After one worker releases a shard, another claims it within this time, also without a notification. */
const handedOverMs = 2_500;

/** Invariant 12, its first part: every shard is a living worker's. @param broken the lease of one that cannot work */
export function checkAllOwned({ world, tables }: SimulationContext, broken?: LeaseId): void {
  const isFree = ({ leaseId, changedMs }: ShardRow) =>
    leaseId === broken || (leaseId === null && world.nowMs - changedMs > handedOverMs);
  const free = tables.shards.filter(isFree);
  if (free.length > 0) world.violated(12, `${free.length} shards are nobody's: ${free[0]?.shard} among them`);
}

/** Invariant 12, its second part: no worker is below its share, rounded down. */
export function checkEvenlyOwned({ world, tables }: SimulationContext): void {
  const workers = [...tables.leases.values()].filter(({ kind }) => kind === "delivery");
  const floor = Math.floor(tables.shards.length / workers.length);
  for (const { id } of workers) {
    const owned = tables.shardsOf(id).length;
    if (owned < floor) world.violated(12, `${id} owns ${owned} shards, and its share is ${floor}`);
  }
}

/** A sweep of a slow database takes seconds, and rests for ten seconds at most. */
const sweptWithinMs = 25_000;

/** Invariant 15: every shard that a worker owns is swept. */
function sweepsCheck(world: World) {
  /** When each shard was swept last, or first seen, by worker. */
  const sweptOf = new OfInstance(() => new Map<number, number>());

  function swept(worker: Instance, shards: readonly number[]): void {
    const swept = sweptOf.get(worker);
    for (const shard of shards) swept.set(shard, world.nowMs);
  }

  /** Called each second of a calm phase, after its first 20 s. */
  function check(worker: Instance): void {
    const swept = sweptOf.get(worker);
    const ready = new Set(worker.worker.ownership.ready);
    for (const shard of swept.keys()) if (!ready.has(shard)) swept.delete(shard);
    for (const shard of ready) {
      const sinceMs = swept.get(shard) ?? world.nowMs;
      swept.set(shard, sinceMs);
      if (world.nowMs - sinceMs <= sweptWithinMs) continue;
      world.violated(15, `${worker.name} has not swept its shard ${shard} for ${sweptWithinMs} ms`);
    }
  }

  return { swept, check };
}

const windowMs = 1_000;
const readsMax = 150;

/** No queue is read endlessly: a worker that reads without result is a busy loop. */
function readsCheck(world: World) {
  const countsOf = new OfInstance(() => new Map<string, { sinceMs: number; count: number }>());

  function count(worker: Instance, { partnerId, queue, after }: QueueRead): void {
    if (after !== undefined) return;
    const counts = countsOf.get(worker);
    const key = `${partnerId} ${queue}`;
    const counted = counts.get(key) ?? { sinceMs: world.nowMs, count: 0 };
    counts.set(key, counted);
    if (world.nowMs - counted.sinceMs >= windowMs) Object.assign(counted, { sinceMs: world.nowMs, count: 0 });
    counted.count += 1;
    if (counted.count <= readsMax) return;
    world.violated(13, `${worker.name} read the head of ${partnerId} "${queue}" ${readsMax} times in ${windowMs} ms`);
  }

  /** An attempt of the partner begins: reading for it is worth while. */
  function begins(worker: Instance, partnerId: string): void {
    for (const [key, counted] of countsOf.get(worker)) if (key.startsWith(partnerId)) counted.count = 0;
  }

  return { count, begins };
}
