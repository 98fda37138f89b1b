import { homeOf, type PartnerId, shardOf } from "../../ids.ts";
import type { Partner } from "../../partners/partner.ts";
import type { Delivery, QueueKey } from "../delivery.ts";
import { type CircuitStore, Circuits, isBlocked } from "../limits/circuits.ts";
import { cooldownMs, type QueueLimits } from "../queues/queue.ts";
import { Queues } from "../queues/queues.ts";
import type { DeliveryStore, Hint } from "../store.ts";
import { BlockedQueues } from "./blocked-queues.ts";
import { Ownership, type ShardStore } from "./ownership.ts";
import { type SendingParts, Sendings } from "./sending.ts";

export interface WorkerParts extends SendingParts {
  readonly store: DeliveryStore;
  readonly shards: ShardStore;
  readonly circuits: CircuitStore;
  /** From 0 to less than 1. */
  readonly random: () => number;
  readonly onOverdue?: (partnerId: PartnerId, parked: number) => void;
  /** The worker may own shards now, or may not any more: `isFit`. */
  readonly onFitness?: () => void;
}

/** Outcomes are remembered for longer than that: see `endedKeptMs`. */
const offeredWithinMs = 5_000;
const tickMs = 1_000;
const leaveEveryMs = 500;
/** The map of shards is read less often while nothing changes, because others announce their changes. */
const stableMapMs = 2_000;
const recheckMs = 5_000;
const sweepCooldownMaxMs = 10_000;
/** Deliveries in memory for each slot: those in flight, and the next ones. */
const rowsPerSlot = 8;
/** A worker's work for the partners of one home. */
interface Home {
  readonly number: number;
  isMaintaining: boolean;
  sweepNotBeforeMs: number;
  recheckedMs: number;
}

/**
 * Sends the pending notifications of the partners of its shards, and is the only one that does: order, rate, circuits
 * and fair shares are decided in its memory. It reads without locks, and each outcome changes only the very round and
 * attempt that it belongs to. A delivery: due → queued (`queues.ts`) → sending (`sending.ts`) → accepted, due again, or
 * parked (docs/internals/delivery.md).
 */
export class DeliveryWorker {
  readonly #parts: WorkerParts;
  readonly #queues: Queues;
  readonly #circuits: Circuits;
  readonly ownership: Ownership;
  readonly #blocked: BlockedQueues;
  readonly #sendings: Sendings;
  readonly #homes: readonly Home[];
  /** Partners that were requested and not known at the last tick. */
  #unknown: ReadonlySet<PartnerId> = new Set();
  /** Those that had not arrived by the next tick either: they or their keys cannot be read. */
  #missing: ReadonlySet<PartnerId> = new Set();
  #isStopping = true;
  #cancelTick: () => void = () => undefined;
  #ticking: Promise<void> | undefined;
  #tickAgain = false;
  #mapNotBeforeMs = 0;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { homes, lease, clock, timers, partners } = parts;
    this.#circuits = new Circuits(parts.random, () => clock.monotonicMs());
    this.ownership = new Ownership({
      store: parts.shards,
      homes,
      lease,
      clock,
      timers,
      prepare: (shards) => this.#prepare(shards),
      onReady: (shards) => void this.#sweep(shards),
      busyShards: (until) => this.#sendings.busyShards(until),
      onFitness: () => parts.onFitness?.(),
      onGone: (shards) => this.#forget(new Set(shards)),
      onTrouble: (error) => parts.onTrouble("shards could not be maintained", error),
    });
    this.#queues = new Queues({
      ...parts,
      rowsMax: parts.slotsMax * rowsPerSlot,
      bytesMax: parts.bytesInFlightMax,
      // Partners that it does not own now are not read; the sweep finds their rows when it does.
      limitsOf: (partnerId) =>
        queueLimits(partners.cached(partnerId), this.owns(partnerId), this.#missing.has(partnerId)),
      readableAtMs: (key) => this.#readableAtMs(key),
      onReady: (queue) => this.#sendings.schedule(queue),
    });
    const peers = { queues: this.#queues, circuits: this.#circuits, ownership: this.ownership };
    this.#blocked = new BlockedQueues({ ...parts, ...peers });
    this.#sendings = new Sendings(parts, { ...peers, blocked: this.#blocked });
    this.#homes = Array.from({ length: homes }, (_, number) => ({
      number,
      isMaintaining: false,
      sweepNotBeforeMs: 0,
      recheckedMs: 0,
    }));
  }

  /** The deliveries in memory, for observation. */
  get queues(): Pick<Queues, "partners" | "queuesOf" | "find" | "rests"> {
    return this.#queues;
  }

  /** POSTs in flight and their content, deliveries in memory and theirs, and outcomes that are not durable yet. */
  get status() {
    const { rows, bytes: rowsBytes } = this.#queues;
    return { ...this.#sendings.status, rows, rowsBytes, shards: this.ownership.count };
  }

  /** Whether it may own shards: its statements are answered. */
  get isFit(): boolean {
    return this.ownership.isFit;
  }

  start(): void {
    this.#isStopping = false;
    this.tick();
  }

  owns(partnerId: PartnerId): boolean {
    return this.ownership.epochOf(partnerId) !== undefined;
  }

  /**
   * A delivery of one of its partners that was just made durable.
   *
   * @param begunMs by the monotonic clock, before it was written. A sweep may have found it long ago if this process
   * stalled, or its database answered late: then it is read again.
   */
  offer(delivery: Delivery, begunMs: number): void {
    const isLate = this.#parts.clock.monotonicMs() - begunMs > offeredWithinMs;
    if (isLate) this.#queues.wake(delivery, delivery.scheduleStartMs);
    else this.#queues.offer(delivery);
  }

  /** Something of one of its partners' queues is due; of any of them, if none is named. */
  wake({ partnerId, queue, sinceMs }: Hint): void {
    if (queue !== undefined) this.#queues.wake({ partnerId, queue }, sinceMs);
    else void this.#sweep([shardOf(partnerId)]);
  }

  /** The partner is known now, or has changed. Never throws: the directory is used by others, too. */
  partnerChanged(partnerId: PartnerId): void {
    try {
      this.#queues.reconsider(partnerId);
    } catch (error) {
      this.#parts.onTrouble("a partner's deliveries could not be reconsidered", error);
    }
  }

  /** A person changed a circuit. */
  circuitsChanged(): void {
    for (const home of this.#homes) home.recheckedMs = Number.NEGATIVE_INFINITY;
    this.tick();
  }

  /** The lease is lost: attempts on the wire end, their outcomes are recorded, and nothing else starts. */
  leaseLost(): void {
    this.ownership.lose();
  }

  /** Settles shards and circuits now, and finds rows that hints missed. */
  tick(): void {
    this.#mapNotBeforeMs = 0;
    this.#tick();
  }

  #tick(): void {
    if (this.#isStopping) return;
    if (this.#ticking !== undefined) {
      this.#tickAgain = true;
      return;
    }
    this.#cancelTick();
    this.#ticking = this.#tickOnce()
      .catch((error: unknown) => this.#parts.onTrouble("pending deliveries could not be maintained", error))
      .finally(() => {
        this.#ticking = undefined;
        if (this.#isStopping) return;
        this.#cancelTick = this.#parts.timers.after(this.#tickAgain ? 0 : tickMs, () => this.#tick());
        this.#tickAgain = false;
      });
  }

  /**
   * Starts nothing more, waits for attempts on the wire (bounded), and releases each shard when its own have ended;
   * aborts the rest, and releases what is left. @returns the number of aborted attempts: other workers repeat them
   */
  async stop(drainTimeoutMs: number): Promise<number> {
    this.#isStopping = true;
    this.#cancelTick();
    this.#sendings.close();
    await this.#ticking;
    this.#leave();
    const left = await this.#sendings.drain(drainTimeoutMs);
    this.#cancelTick();
    this.#sendings.stop();
    await this.ownership.stop().catch((error) => this.#parts.onTrouble("shards could not be released", error));
    this.#queues.stop();
    return left;
  }

  #leave(): void {
    void this.ownership.leave();
    this.#cancelTick = this.#parts.timers.after(leaveEveryMs, () => this.#leave());
  }

  async #tickOnce(): Promise<void> {
    const { clock } = this.#parts;
    if (!this.ownership.isStable || clock.monotonicMs() >= this.#mapNotBeforeMs) {
      this.#mapNotBeforeMs = clock.monotonicMs() + stableMapMs;
      await this.ownership.tick();
    }
    this.#forgetMissing();
    const ready = Map.groupBy(this.ownership.ready, (shard) => this.#homeOf(shard));
    for (const [home, shards] of ready) void this.#maintain(home, shards);
  }

  #homeOf(shard: number): Home {
    // Every shard has one.
    return this.#homes[homeOf(shard, this.#homes.length)] as Home;
  }

  async #maintain(home: Home, shards: readonly number[]): Promise<void> {
    if (home.isMaintaining) return;
    const { clock, onTrouble } = this.#parts;
    home.isMaintaining = true;
    try {
      if (clock.monotonicMs() - home.recheckedMs >= recheckMs) await this.#recheckCircuits(home, shards);
      if (clock.monotonicMs() < home.sweepNotBeforeMs) return;
      const heads = await this.#sweep(shards, true);
      void this.#blocked.scan(home.number, heads);
    } catch (error) {
      onTrouble("circuits could not be read again", error);
    } finally {
      home.isMaintaining = false;
    }
  }

  async #prepare(shards: readonly number[]): Promise<void> {
    // What was known from an earlier ownership was forgotten at its end: see `#forget`.
    this.#circuits.load(await this.#parts.circuits.load(shards));
  }

  async #recheckCircuits(home: Home, shards: readonly number[]): Promise<void> {
    const askedMs = this.#parts.clock.monotonicMs();
    home.recheckedMs = askedMs;
    const loaded = await this.#parts.circuits.loadChangedByHand(shards);
    // A shard that was claimed since has circuits that are newer than this answer.
    const changed = this.#circuits.load(loaded.filter(({ partnerId }) => this.ownership.sinceMs(partnerId) < askedMs));
    for (const { partnerId } of changed) this.#queues.reconsider(partnerId);
  }

  /** @param shards of one home */
  async #sweep(shards: readonly number[], leavesRecent = false): Promise<readonly QueueKey[]> {
    const [shard] = shards;
    if (shard === undefined) return [];
    const home = this.#homeOf(shard);
    const { clock, onTrouble } = this.#parts;
    const startedMs = clock.monotonicMs();
    try {
      return await this.#queues.sweep(shards, (partnerId) => this.owns(partnerId), leavesRecent);
    } catch (error) {
      onTrouble("due deliveries could not be searched", error);
      return [];
    } finally {
      const nowMs = clock.monotonicMs();
      // A sweep of a few shards is short, and shortens no rest.
      const coolsUntilMs = nowMs + cooldownMs(nowMs - startedMs, sweepCooldownMaxMs);
      home.sweepNotBeforeMs = Math.max(home.sweepNotBeforeMs, coolsUntilMs);
    }
  }

  #readableAtMs(key: QueueKey): number | undefined {
    const gate = this.#circuits.gateOfQueue(key, this.#parts.partners.cached(key.partnerId)?.settings);
    return isBlocked(gate) ? gate.untilMs : Number.NEGATIVE_INFINITY;
  }

  /** Their rows take no memory from others. */
  #forgetMissing(): void {
    const { partners } = this.#parts;
    const unknown = this.#queues.partners().filter((partnerId) => partners.cached(partnerId) === undefined);
    this.#missing = new Set(unknown.filter((partnerId) => this.#unknown.has(partnerId)));
    this.#unknown = new Set(unknown);
    for (const partnerId of this.#missing) {
      for (const queue of this.#queues.queuesOf(partnerId))
        if (queue.head !== undefined) this.#queues.forgetReady(queue);
    }
  }

  #forget(shards: ReadonlySet<number>): void {
    const isGone = (partnerId: PartnerId) => shards.has(shardOf(partnerId));
    this.#sendings.forget(isGone);
    this.#circuits.forget(isGone);
  }
}

/** Rows of one queue for each POST that its partner may have in flight. */
const rowsPerInFlight = 4;
const rowsPerQueueMax = 512;
/** Rows of a queue whose partner was requested and arrives shortly. */
const rowsOfUnknown = 32;

/** @param partner undefined while it is not known @param isMissing it was requested, and did not arrive */
function queueLimits(partner: Partner | undefined, isOwned: boolean, isMissing: boolean): QueueLimits {
  if (isOwned && partner === undefined) return { rowsMax: isMissing ? 0 : rowsOfUnknown, mayRead: false };
  if (partner?.state !== "active" || !isOwned) return { rowsMax: 0, mayRead: false };
  return { rowsMax: Math.min(partner.settings.maxInFlight * rowsPerInFlight, rowsPerQueueMax), mayRead: true };
}
