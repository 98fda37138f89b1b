import type { AttemptOptions } from "../../packages/server/src/delivery/attempt.ts";
import { originCircuit, urlCircuit } from "../../packages/server/src/delivery/circuit.ts";
import type { Delivery } from "../../packages/server/src/delivery/delivery.ts";
import { shardOf } from "../../packages/server/src/shard.ts";
import type { SimulationPlan } from "../context.ts";
import type { NotificationStart, SimulatedNotification } from "../database/notification.ts";
import type { Tables } from "../database/tables.ts";
import type { Instance } from "../service/instance.ts";
import type { World } from "../world.ts";
import { CircuitsKnown } from "./circuits-known.ts";
import { RateCheck } from "./rates.ts";

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
  readonly #world: World;
  readonly #tables: Tables;
  readonly #plan: SimulationPlan;
  readonly #rates: RateCheck;
  readonly #probeSlack: number;
  readonly #circuits = new WeakMap<Instance, CircuitsKnown>();
  readonly #underWay = new WeakMap<Instance, Map<string, UnderWay[]>>();
  readonly #fullMs = new WeakMap<Instance, number>();
  /** When a partner last began an attempt, in the world's time. */
  readonly startedMs = new Map<string, number>();

  constructor(world: World, tables: Tables, plan: SimulationPlan) {
    this.#world = world;
    this.#tables = tables;
    this.#plan = plan;
    this.#rates = new RateCheck(plan.drift);
    this.#probeSlack = plan.drift + probeSlack;
  }

  /** When the worker last had no free slot, in the world's time. */
  fullMs(worker: Instance): number {
    this.#noteSlots(worker);
    return this.#fullMs.get(worker) ?? Number.NEGATIVE_INFINITY;
  }

  /** At the end of an attempt its slot is not free yet. */
  #noteSlots(worker: Instance): void {
    if (worker.worker.status.slots >= this.#plan.slotsMax) this.#fullMs.set(worker, this.#world.nowMs);
  }

  circuitsOf(worker: Instance): CircuitsKnown {
    const known = this.#circuits.get(worker) ?? new CircuitsKnown(worker, () => this.#world.nowMs);
    this.#circuits.set(worker, known);
    return known;
  }

  /** Invariant 7: one probe for each open endpoint, at its time, and nothing for a registered one that is gone. */
  attemptBegins(worker: Instance, delivery: Delivery, url: string, isRegistered: boolean): void {
    const { partnerId, id, bytes } = delivery;
    const epoch = worker.worker.ownership.epochOf(partnerId);
    this.#world.note(worker.name, "begins", id, partnerId, "epoch", epoch, url, bytes);
    this.startedMs.set(partnerId, this.#world.nowMs);
    this.#noteSlots(worker);
    if (epoch === undefined) {
      this.#world.violated(2, `${worker.name} begins ${id} without owning its shard`);
      return;
    }
    const underWay = this.#underWayOf(worker, `${partnerId} ${url}`);
    const known = this.circuitsOf(worker);
    const circuit = known.find(partnerId, originCircuit(url), epoch);
    if (circuit?.state === "open") {
      if (this.#world.nowMs < circuit.sinceMs + (circuit.probeAtMs - circuit.sinceMs) * (1 - this.#probeSlack) - 1) {
        this.#world.violated(7, `${worker.name} probes ${url} too early with ${id}`);
      }
      if (this.#isProbed(worker, partnerId, originCircuit(url), circuit.sinceMs, epoch)) {
        this.#world.violated(7, `${worker.name} probes ${url} twice at once, with ${id}`);
      }
    }
    if (isRegistered && known.find(partnerId, urlCircuit(url), epoch)?.state === "gone") {
      this.#world.violated(7, `${worker.name} sends ${id} to ${url}, which is gone`);
    }
    underWay.push({ delivery, epoch, beganMs: this.#world.nowMs });
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
    this.#world.violated(3, `${name} has forgotten ${id} while it was on the wire, and may send it again`);
  }

  #isHeld({ worker }: Instance, delivery: Delivery): boolean {
    return worker.queues.queuesOf(delivery.partnerId).some((queue) => queue.holds(delivery));
  }

  firstByte(worker: Instance, delivery: Delivery, { outOfOrder }: AttemptOptions, begunMs: number): NotificationStart {
    const one = this.#tables.notifications.get(delivery.id);
    const leaseId = worker.lease.current();
    const world = this.#world;
    world.note(worker.name, "first byte", delivery.id, "round", delivery.round, "attempt", delivery.attemptsMade);
    const shard = this.#tables.shards[shardOf(delivery.partnerId)];
    const deadlineMs = begunMs + this.#plan.attemptTimeoutMs;
    const { round, attemptsMade } = delivery;
    const isEnded = false;
    if (leaseId === undefined || shard?.leaseId !== leaseId || !this.#tables.leases.has(leaseId)) {
      const owner = shard?.leaseId ?? "nobody";
      world.violated(
        2,
        `${worker.name} (${leaseId}) writes ${delivery.id} of shard ${shard?.shard}, which is of ${owner}`,
      );
      return { round, attemptsMade, leaseId: "" as never, epoch: undefined, deadlineMs, isEnded, mayRepeat: true };
    }
    const start: NotificationStart = {
      round,
      attemptsMade,
      leaseId,
      epoch: shard.epoch,
      deadlineMs,
      isEnded,
      mayRepeat: false,
    };
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
        !other.isEnded && this.#world.nowMs < other.deadlineMs && this.#tables.leases.has(other.leaseId);
      if (!isSameOwner && !isUnderWay) continue;
      this.#world.violated(3, `${one.id} (round ${round}, attempt ${attemptsMade}) is sent again by ${leaseId}`);
    }
    one.starts.push(start);
  }

  /** Invariant 5. */
  #checkOrder(one: SimulatedNotification, outOfOrder: boolean): void {
    if (outOfOrder && one.mayOvertake) return;
    const first = one.predecessors.find(({ wasParked, acceptedRounds }) => !wasParked && acceptedRounds.size === 0);
    if (first !== undefined) this.#world.violated(5, `${one.id} leaves before ${first.id}`);
  }

  /** Invariant 6. */
  #checkRate({ partnerId, id }: SimulatedNotification, begunMs: number): void {
    const perSecond = this.#tables.merchants.find((one) => one.id === partnerId)?.partner.settings.maxPerSecond ?? null;
    const { nowMs } = this.#world;
    if (perSecond === null || nowMs - begunMs > bunchedAfterMs) return;
    const isKept = this.#rates.count(partnerId, perSecond, nowMs);
    const { epoch, changedMs: atMs } = this.#tables.shards[shardOf(partnerId)] ?? { epoch: 0, changedMs: nowMs };
    // One that began before the claim had a token of an earlier ownership.
    const isKeptSince = begunMs < atMs || this.#rates.countSince({ epoch, atMs }, partnerId, perSecond, nowMs);
    if (isKept && isKeptSince) return;
    this.#world.violated(6, `${id} is one more than ${perSecond} a second allow for ${partnerId}`);
  }

  #isProbed(worker: Instance, partnerId: string, origin: string, sinceMs: number, epoch: number): boolean {
    for (const [key, attempts] of this.#underWay.get(worker) ?? []) {
      if (!key.startsWith(`${partnerId} ${origin}/`)) continue;
      if (attempts.some((one) => one.epoch === epoch && one.beganMs > sinceMs)) return true;
    }
    return false;
  }

  #underWayOf(worker: Instance, key: string): UnderWay[] {
    const all = this.#underWay.get(worker) ?? new Map<string, UnderWay[]>();
    this.#underWay.set(worker, all);
    const one = all.get(key) ?? [];
    all.set(key, one);
    return one;
  }
}
