import type { AttemptOptions } from "../../packages/server/src/delivery/attempt.ts";
import type { CircuitState } from "../../packages/server/src/delivery/circuit.ts";
import {
  type CircuitChange,
  type LoadedCircuit,
  originCircuit,
  urlCircuit,
} from "../../packages/server/src/delivery/circuits.ts";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { type PartnerId, shardOf } from "../../packages/server/src/ids.ts";
import type { Observed } from "../context.ts";
import type { NotificationStart, SimulatedNotification } from "../database/tables.ts";
import { circuitKey } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";

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
export class StartChecks {
  readonly #seen: Observed;
  readonly #rates: RateCheck;
  readonly #probeSlack: number;
  readonly circuits = new OfInstance((worker) => new CircuitsKnown(worker, () => this.#seen.world.nowMs));
  readonly #underWay = new OfInstance(() => new Map<string, UnderWay[]>());
  readonly #fullMs = new WeakMap<Instance, number>();
  /** When a partner last began an attempt, in the world's time. */
  readonly startedMs = new Map<string, number>();

  constructor(seen: Observed) {
    this.#seen = seen;
    this.#rates = new RateCheck(seen.plan.drift);
    this.#probeSlack = seen.plan.drift + probeSlack;
  }

  /** When the worker last had no free slot, in the world's time. */
  fullMs(worker: Instance): number {
    this.#noteSlots(worker);
    return this.#fullMs.get(worker) ?? Number.NEGATIVE_INFINITY;
  }

  /** At the end of an attempt its slot is not free yet. */
  #noteSlots(worker: Instance): void {
    if (worker.worker.status.slots >= this.#seen.plan.slotsMax) this.#fullMs.set(worker, this.#seen.world.nowMs);
  }

  /** Invariant 7: one probe for each open endpoint, at its time, and nothing for a registered one that is gone. */
  attemptBegins(worker: Instance, delivery: Delivery, url: string, isRegistered: boolean): void {
    const { partnerId, id, bytes } = delivery;
    const epoch = worker.worker.ownership.epochOf(partnerId);
    this.#seen.world.note(worker.name, "begins", id, partnerId, "epoch", epoch, url, bytes);
    this.startedMs.set(partnerId, this.#seen.world.nowMs);
    this.#noteSlots(worker);
    if (epoch === undefined) {
      this.#seen.world.violated(2, `${worker.name} begins ${id} without owning its shard`);
      return;
    }
    const underWay = this.#underWayOf(worker, `${partnerId} ${url}`);
    const known = this.circuits.get(worker);
    const circuit = known.find(partnerId, originCircuit(url), epoch);
    if (circuit?.state === "open") {
      if (
        this.#seen.world.nowMs <
        circuit.sinceMs + (circuit.probeAtMs - circuit.sinceMs) * (1 - this.#probeSlack) - 1
      ) {
        this.#seen.world.violated(7, `${worker.name} probes ${url} too early with ${id}`);
      }
      if (this.#isProbed(worker, partnerId, originCircuit(url), circuit.sinceMs, epoch)) {
        this.#seen.world.violated(7, `${worker.name} probes ${url} twice at once, with ${id}`);
      }
    }
    if (isRegistered && known.find(partnerId, urlCircuit(url), epoch)?.state === "gone") {
      this.#seen.world.violated(7, `${worker.name} sends ${id} to ${url}, which is gone`);
    }
    underWay.push({ delivery, epoch, beganMs: this.#seen.world.nowMs });
  }

  /** Invariant 3: the end of another attempt did not end this one in memory. */
  attemptEnds(instance: Instance, delivery: Delivery, url: string): void {
    this.#noteSlots(instance);
    const { worker, name } = instance;
    const { partnerId, id } = delivery;
    const underWay = this.#underWayOf(instance, `${partnerId} ${url}`);
    const [ended] = underWay.splice(
      underWay.findIndex((one) => one.delivery === delivery),
      1,
    );
    if (ended?.epoch !== worker.ownership.epochOf(partnerId) || this.#isHeld(instance, delivery)) return;
    this.#seen.world.violated(3, `${name} has forgotten ${id} while it was on the wire, and may send it again`);
  }

  #isHeld({ worker }: Instance, delivery: Delivery): boolean {
    return worker.queues.find(delivery.id) === delivery;
  }

  firstByte(worker: Instance, delivery: Delivery, { outOfOrder }: AttemptOptions, begunMs: number): NotificationStart {
    const one = this.#seen.tables.notifications.get(delivery.id);
    const leaseId = worker.lease.current();
    const world = this.#seen.world;
    world.note(worker.name, "first byte", delivery.id, "round", delivery.round, "attempt", delivery.attemptsMade);
    const shard = this.#seen.tables.shards[shardOf(delivery.partnerId)];
    const deadlineMs = begunMs + this.#seen.plan.attemptTimeoutMs;
    const { round, attemptsMade } = delivery;
    const known = { leaseId: leaseId ?? ("" as never), epoch: shard?.epoch };
    const start: NotificationStart = { round, attemptsMade, ...known, deadlineMs, isEnded: false, mayRepeat: false };
    if (leaseId === undefined || shard?.leaseId !== leaseId || !this.#seen.tables.leases.has(leaseId)) {
      const owner = shard?.leaseId ?? "nobody";
      world.violated(
        2,
        `${worker.name} (${leaseId}) writes ${delivery.id} of shard ${shard?.shard}, which is of ${owner}`,
      );
      return start;
    }
    if (one === undefined) return start;
    this.#checkOnce(one, start);
    this.#checkOrder(one, outOfOrder);
    this.#checkRate(one, begunMs);
    return start;
  }

  /** Invariant 3: no round and attempt begins again while it is under way; nor twice under one ownership. */
  #checkOnce(one: SimulatedNotification, start: NotificationStart): void {
    const { round, attemptsMade, leaseId, epoch } = start;
    one.starts = one.starts.filter((other) => other.round === round && other.attemptsMade === attemptsMade);
    for (const other of one.starts) {
      if (other.mayRepeat) continue;
      const isSameOwner = other.leaseId === leaseId && other.epoch === epoch;
      const isUnderWay =
        !other.isEnded && this.#seen.world.nowMs < other.deadlineMs && this.#seen.tables.leases.has(other.leaseId);
      if (!isSameOwner && !isUnderWay) continue;
      this.#seen.world.violated(3, `${one.id} (round ${round}, attempt ${attemptsMade}) is sent again by ${leaseId}`);
    }
    one.starts.push(start);
  }

  /** Invariant 5. */
  #checkOrder(one: SimulatedNotification, outOfOrder: boolean): void {
    if (outOfOrder && one.mayOvertake) return;
    const first = one.predecessors.find(({ wasParked, acceptedRounds }) => !wasParked && acceptedRounds.size === 0);
    if (first !== undefined) this.#seen.world.violated(5, `${one.id} leaves before ${first.id}`);
  }

  /** Invariant 6. */
  #checkRate({ partnerId, id }: SimulatedNotification, begunMs: number): void {
    const perSecond = this.#seen.tables.merchantOf(partnerId)?.partner.settings.maxPerSecond ?? null;
    const { nowMs } = this.#seen.world;
    if (perSecond === null || nowMs - begunMs > bunchedAfterMs) return;
    const isKept = this.#rates.count(partnerId, perSecond, nowMs);
    const { epoch, changedMs: atMs } = this.#seen.tables.shards[shardOf(partnerId)] ?? { epoch: 0, changedMs: nowMs };
    // One that began before the claim had a token of an earlier ownership.
    const isKeptSince = begunMs < atMs || this.#rates.countSince({ epoch, atMs }, partnerId, perSecond, nowMs);
    if (isKept && isKeptSince) return;
    this.#seen.world.violated(6, `${id} is one more than ${perSecond} a second allow for ${partnerId}`);
  }

  #isProbed(worker: Instance, partnerId: string, origin: string, sinceMs: number, epoch: number): boolean {
    for (const [key, attempts] of this.#underWay.get(worker)) {
      if (!key.startsWith(`${partnerId} ${origin}/`)) continue;
      if (attempts.some((one) => one.epoch === epoch && one.beganMs > sinceMs)) return true;
    }
    return false;
  }

  #underWayOf(worker: Instance, key: string): UnderWay[] {
    const all = this.#underWay.get(worker);
    const one = all.get(key) ?? [];
    all.set(key, one);
    return one;
  }
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
export class RateCheck {
  readonly #buckets = new Map<PartnerId, Bucket>();
  readonly #owned = new Map<PartnerId, Claim & { count: number }>();
  readonly #pace: number;

  /** @param drift the share by which clocks are too fast or too slow */
  constructor(drift: number) {
    this.#pace = 1 + drift + paceSlack;
  }

  /** @returns whether the rate is kept since the claim, under which the POST began */
  countSince({ epoch, atMs }: Claim, partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const known = this.#owned.get(partnerId);
    const owned = known?.epoch === epoch ? known : { epoch, atMs, count: 0 };
    this.#owned.set(partnerId, owned);
    owned.count += 1;
    return owned.count <= ((nowMs - owned.atMs + delayMs) * perSecond * this.#pace) / 1_000 + 1;
  }

  /** @returns whether the rate is kept */
  count(partnerId: PartnerId, perSecond: number, nowMs: number): boolean {
    const capacity = Math.max(1, perSecond) + 1 + (perSecond * delayMs) / 1_000;
    const bucket = this.#buckets.get(partnerId) ?? { tokens: capacity, atMs: nowMs };
    this.#buckets.set(partnerId, bucket);
    bucket.tokens = Math.min(capacity, bucket.tokens + ((nowMs - bucket.atMs) * perSecond * this.#pace) / 1_000) - 1;
    bucket.atMs = nowMs;
    return bucket.tokens >= -1e-6;
  }
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
class CircuitsKnown {
  readonly #known = new Map<string, Known>();
  readonly #epochOf: (partnerId: PartnerId) => number | undefined;
  readonly #nowMs: () => number;

  constructor(worker: Instance, nowMs: () => number) {
    this.#epochOf = (partnerId) => worker.worker.ownership.epochOf(partnerId);
    this.#nowMs = nowMs;
  }

  loaded(loaded: readonly LoadedCircuit[], epochOf: (partnerId: PartnerId) => number): void {
    for (const { partnerId, queue, circuit, controlNo } of loaded) {
      const key = circuitKey(partnerId, queue);
      const epoch = this.#epochOf(partnerId) ?? epochOf(partnerId);
      const known = this.#known.get(key);
      if (known !== undefined && known.epoch === epoch && known.controlNo >= controlNo) continue;
      this.#set(key, circuit, epoch, controlNo);
    }
  }

  changed({ partnerId, queue, circuit, epoch, controlNo }: CircuitChange): void {
    // A circuit of an earlier ownership may be dropped or not.
    const current = this.#epochOf(partnerId);
    if (current === undefined || current === epoch) this.#set(circuitKey(partnerId, queue), circuit, epoch, controlNo);
  }

  /** The change could not be stored. An endpoint whose probe failed stays open, and its next probe at its time. */
  withdrawn({ partnerId, queue, circuit, before }: CircuitChange): void {
    const key = circuitKey(partnerId, queue);
    const known = this.#known.get(key);
    if (known?.circuit !== circuit || (before.state === "open" && circuit.state === "open")) return;
    this.#known.set(key, { ...known, state: before.state, probeAtMs: known.sinceMs + (before.probeInMs ?? 0) });
  }

  /** Undefined: closed, or not known under this epoch. */
  find(partnerId: PartnerId, queue: string, epoch: number): Known | undefined {
    const known = this.#known.get(circuitKey(partnerId, queue));
    return known?.epoch === epoch && known.state !== "closed" ? known : undefined;
  }

  #set(key: string, circuit: CircuitChange["circuit"], epoch: number, controlNo: number): void {
    const { state, probeInMs } = circuit;
    const nowMs = this.#nowMs();
    this.#known.set(key, { circuit, state, epoch, controlNo, sinceMs: nowMs, probeAtMs: nowMs + (probeInMs ?? 0) });
  }
}
