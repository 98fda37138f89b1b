import type { AttemptOptions } from "../../packages/server/src/delivery/attempt/attempt.ts";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import type { CircuitState } from "../../packages/server/src/delivery/limits/circuit.ts";
import {
  type CircuitChange,
  type LoadedCircuit,
  originCircuit,
  urlCircuit,
} from "../../packages/server/src/delivery/limits/circuits.ts";
import { type PartnerId, shardOf } from "../../packages/server/src/ids.ts";
import type { Observed } from "../context.ts";
import type { NotificationStart, SimulatedNotification } from "../database/tables.ts";
import { circuitKey } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";

/** Something that is known of each instance. */
export class OfInstance<Known> {
  readonly #known = new WeakMap<Instance, Known>();
  readonly #begin: (instance: Instance) => Known;

  /** @param begin what is known of a new one */
  constructor(begin: (instance: Instance) => Known) {
    this.#begin = begin;
  }

  get(instance: Instance): Known {
    const known = this.#known.get(instance) ?? this.#begin(instance);
    this.#known.set(instance, known);
    return known;
  }
}

interface UnderWay {
  readonly delivery: Delivery;
  readonly epoch: number;
  readonly beganMs: number;
}

/** Clocks differ by a little more than they drift, and a timer may be early by that. */
const probeSlack = 0.008;
/** An attempt delayed between its token and its first byte may be bunched with others. */
const bunchedAfterMs = 50;

/** The conditions at the beginning of an attempt and at its first byte: invariants 2, 3, 5, 6 and 7. */
export function startChecks({ world, plan, tables }: Observed) {
  const rates = rateCheck(plan.drift);
  const slack = plan.drift + probeSlack;
  const circuits = new OfInstance((worker) => circuitsKnown(worker, world));
  const underWayAt = new OfInstance(() => new Map<string, UnderWay[]>());
  const fullAtMs = new WeakMap<Instance, number>();
  /** When a partner last began an attempt, in the world's time. */
  const startedMs = new Map<string, number>();

  /** When the worker last had no free slot, in the world's time. */
  function fullMs(worker: Instance): number {
    noteSlots(worker);
    return fullAtMs.get(worker) ?? Number.NEGATIVE_INFINITY;
  }

  /** At the end of an attempt its slot is not free yet. */
  function noteSlots(worker: Instance): void {
    if (worker.worker.status.slots >= plan.slotsMax) fullAtMs.set(worker, world.nowMs);
  }

  /** Invariant 7: one probe for each open endpoint, at its time, and nothing for a registered one that is gone. */
  function attemptBegins(worker: Instance, delivery: Delivery, url: string, isRegistered: boolean): void {
    const { partnerId, id, bytes } = delivery;
    const epoch = worker.worker.ownership.epochOf(partnerId);
    world.note(worker.name, "begins", id, partnerId, "epoch", epoch, url, bytes);
    startedMs.set(partnerId, world.nowMs);
    noteSlots(worker);
    if (epoch === undefined) {
      world.violated(2, `${worker.name} begins ${id} without owning its shard`);
      return;
    }
    const underWay = underWayOf(worker, `${partnerId} ${url}`);
    const known = circuits.get(worker);
    const circuit = known.find(partnerId, originCircuit(url), epoch);
    if (circuit?.state === "open") {
      if (world.nowMs < circuit.sinceMs + (circuit.probeAtMs - circuit.sinceMs) * (1 - slack) - 1) {
        world.violated(7, `${worker.name} probes ${url} too early with ${id}`);
      }
      if (isProbed(worker, partnerId, originCircuit(url), circuit.sinceMs, epoch)) {
        world.violated(7, `${worker.name} probes ${url} twice at once, with ${id}`);
      }
    }
    if (isRegistered && known.find(partnerId, urlCircuit(url), epoch)?.state === "gone") {
      world.violated(7, `${worker.name} sends ${id} to ${url}, which is gone`);
    }
    underWay.push({ delivery, epoch, beganMs: world.nowMs });
  }

  /** Invariant 3: the end of another attempt did not end this one in memory. */
  function attemptEnds(instance: Instance, delivery: Delivery, url: string): void {
    noteSlots(instance);
    const { worker, name } = instance;
    const { partnerId, id } = delivery;
    const underWay = underWayOf(instance, `${partnerId} ${url}`);
    const [ended] = underWay.splice(
      underWay.findIndex((one) => one.delivery === delivery),
      1,
    );
    if (ended?.epoch !== worker.ownership.epochOf(partnerId) || isHeld(instance, delivery)) return;
    world.violated(3, `${name} has forgotten ${id} while it was on the wire, and may send it again`);
  }

  function isHeld({ worker }: Instance, delivery: Delivery): boolean {
    return worker.queues.find(delivery.id) === delivery;
  }

  function firstByte(
    worker: Instance,
    delivery: Delivery,
    { outOfOrder }: AttemptOptions,
    begunMs: number,
  ): NotificationStart {
    const one = tables.notifications.get(delivery.id);
    const leaseId = worker.lease.current();
    world.note(worker.name, "first byte", delivery.id, "round", delivery.round, "attempt", delivery.attemptsMade);
    const shard = tables.shards[shardOf(delivery.partnerId)];
    const deadlineMs = begunMs + plan.attemptTimeoutMs;
    const { round, attemptsMade } = delivery;
    const known = { leaseId: leaseId ?? ("" as never), epoch: shard?.epoch };
    const start: NotificationStart = { round, attemptsMade, ...known, deadlineMs, isEnded: false, mayRepeat: false };
    if (leaseId === undefined || shard?.leaseId !== leaseId || !tables.leases.has(leaseId)) {
      const owner = shard?.leaseId ?? "nobody";
      world.violated(
        2,
        `${worker.name} (${leaseId}) writes ${delivery.id} of shard ${shard?.shard}, which is of ${owner}`,
      );
      return start;
    }
    if (one === undefined) return start;
    checkOnce(one, start);
    checkOrder(one, outOfOrder);
    checkRate(one, begunMs);
    return start;
  }

  /** Invariant 3: no round and attempt begins again while it is under way; nor twice under one ownership. */
  function checkOnce(one: SimulatedNotification, start: NotificationStart): void {
    const { round, attemptsMade, leaseId, epoch } = start;
    one.starts = one.starts.filter((other) => other.round === round && other.attemptsMade === attemptsMade);
    for (const other of one.starts) {
      if (other.mayRepeat) continue;
      const isSameOwner = other.leaseId === leaseId && other.epoch === epoch;
      const isUnderWay = !other.isEnded && world.nowMs < other.deadlineMs && tables.leases.has(other.leaseId);
      if (!isSameOwner && !isUnderWay) continue;
      world.violated(3, `${one.id} (round ${round}, attempt ${attemptsMade}) is sent again by ${leaseId}`);
    }
    one.starts.push(start);
  }

  /** Invariant 5. */
  function checkOrder(one: SimulatedNotification, outOfOrder: boolean): void {
    if (outOfOrder && one.mayOvertake) return;
    const first = one.predecessors.find(({ wasParked, acceptedRounds }) => !wasParked && acceptedRounds.size === 0);
    if (first !== undefined) world.violated(5, `${one.id} leaves before ${first.id}`);
  }

  /** Invariant 6. */
  function checkRate({ partnerId, id }: SimulatedNotification, begunMs: number): void {
    const perSecond = tables.merchantOf(partnerId)?.partner.settings.maxPerSecond ?? null;
    const { nowMs } = world;
    if (perSecond === null || nowMs - begunMs > bunchedAfterMs) return;
    const isKept = rates.count(partnerId, perSecond, nowMs);
    const { epoch, changedMs: atMs } = tables.shards[shardOf(partnerId)] ?? { epoch: 0, changedMs: nowMs };
    // One that began before the claim had a token of an earlier ownership.
    const isKeptSince = begunMs < atMs || rates.countSince({ epoch, atMs }, partnerId, perSecond, nowMs);
    if (isKept && isKeptSince) return;
    world.violated(6, `${id} is one more than ${perSecond} a second allow for ${partnerId}`);
  }

  function isProbed(worker: Instance, partnerId: string, origin: string, sinceMs: number, epoch: number): boolean {
    for (const [key, attempts] of underWayAt.get(worker)) {
      if (!key.startsWith(`${partnerId} ${origin}/`)) continue;
      if (attempts.some((one) => one.epoch === epoch && one.beganMs > sinceMs)) return true;
    }
    return false;
  }

  /** The attempts of one ownership of a shard. */
  function underWayOfShard(worker: Instance, shard: number, epoch: number): number {
    const all = [...underWayAt.get(worker).values()].flat();
    return all.filter((one) => one.epoch === epoch && shardOf(one.delivery.partnerId) === shard).length;
  }

  function underWayOf(worker: Instance, key: string): UnderWay[] {
    const all = underWayAt.get(worker);
    const one = all.get(key) ?? [];
    all.set(key, one);
    return one;
  }

  return { circuits, startedMs, fullMs, attemptBegins, attemptEnds, firstByte, underWayOfShard };
}

interface Bucket {
  tokens: number;
  atMs: number;
}

/** The claim of a shard. */
interface Claim {
  readonly epoch: number;
  readonly atMs: number;
}

/** Clocks may differ a little more than they drift, and a POST leaves within 50 ms of its token. */
const paceSlack = 0.001;
const delayMs = 50;

/**
 * Counts each partner's POSTs: in any t seconds at most rate × t, one bucket, and one. In the t seconds since its shard
 * was claimed they are rate × t, and one: the owner before may have used the bucket.
 */
/** @param drift the share by which clocks are too fast or too slow */
function rateCheck(drift: number) {
  const buckets = new Map<PartnerId, Bucket>();
  const ownedShards = new Map<PartnerId, Claim & { count: number }>();
  const pace = 1 + drift + paceSlack;

  /** @returns whether the rate is kept since the claim, under which the POST began */
  function countSince({ epoch, atMs }: Claim, partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const known = ownedShards.get(partnerId);
    const owned = known?.epoch === epoch ? known : { epoch, atMs, count: 0 };
    ownedShards.set(partnerId, owned);
    owned.count += 1;
    return owned.count <= ((nowMs - owned.atMs + delayMs) * perSecond * pace) / 1_000 + 1;
  }

  /** @returns whether the rate is kept */
  function count(partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const capacity = Math.max(1, perSecond) + 1 + (perSecond * delayMs) / 1_000;
    const bucket = buckets.get(partnerId) ?? { tokens: capacity, atMs: nowMs };
    buckets.set(partnerId, bucket);
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.atMs) * perSecond * pace) / 1_000) - 1;
    bucket.atMs = nowMs;
    return bucket.tokens >= -1e-6;
  }

  return { count, countSince };
}

interface Known {
  /** As it was loaded or changed, which tells one change from the next. */
  readonly circuit: CircuitChange["circuit"];
  readonly state: CircuitState;
  readonly epoch: number;
  readonly controlNo: number;
  readonly sinceMs: number;
  /** In simulated time. */
  readonly probeAtMs: number;
}

/** The circuits that one worker must know, from its reads and its own writes. */
function circuitsKnown({ worker }: Instance, world: World) {
  const knownCircuits = new Map<string, Known>();
  const epochHeld = (partnerId: PartnerId) => worker.ownership.epochOf(partnerId);

  function loaded(loaded: readonly LoadedCircuit[], epochOf: (partnerId: PartnerId) => number): void {
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      const key = circuitKey(partnerId, queue);
      const epoch = epochHeld(partnerId) ?? epochOf(partnerId);
      const known = knownCircuits.get(key);
      if (known !== undefined && known.epoch === epoch && known.controlNo >= controlNo) continue;
      set(key, circuit, epoch, controlNo);
    }
  }

  function changed({ partnerId, queue, circuit, epoch, controlNo }: CircuitChange): void {
    // A circuit of an earlier ownership may be dropped or not.
    const current = epochHeld(partnerId);
    if (current === undefined || current === epoch) set(circuitKey(partnerId, queue), circuit, epoch, controlNo);
  }

  /** The change could not be stored. An endpoint whose probe failed stays open, and its next probe at its time. */
  function withdrawn({ partnerId, queue, circuit, before }: CircuitChange): void {
    const key = circuitKey(partnerId, queue);
    const known = knownCircuits.get(key);
    if (known?.circuit !== circuit || (before.state === "open" && circuit.state === "open")) return;
    knownCircuits.set(key, { ...known, state: before.state, probeAtMs: known.sinceMs + (before.probeInMs ?? 0) });
  }

  /** Undefined: closed, or not known under this epoch. */
  function find(partnerId: PartnerId, queue: string, epoch: number): Known | undefined {
    const known = knownCircuits.get(circuitKey(partnerId, queue));
    return known?.epoch === epoch && known.state !== "closed" ? known : undefined;
  }

  function set(key: string, circuit: CircuitChange["circuit"], epoch: number, controlNo: number): void {
    const { state, probeInMs } = circuit;
    const { nowMs } = world;
    knownCircuits.set(key, { circuit, state, epoch, controlNo, sinceMs: nowMs, probeAtMs: nowMs + (probeInMs ?? 0) });
  }

  return { loaded, changed, withdrawn, find };
}
