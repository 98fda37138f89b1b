import type { Clock, Timers } from "../clock.ts";
import { homeOf, type PartnerId, shardOf } from "../ids.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import type { Partner } from "../partners/partner.ts";
import type { AttemptResult, MakeAttempt } from "./attempt.ts";
import { type BlockedQueue, BlockedQueues } from "./blocked-queues.ts";
import { type BlockedGate, type CircuitStore, Circuits, isBlocked } from "./circuit.ts";
import type { Delivery, QueueKey } from "./delivery.ts";
import { Ownership, type ShardStore } from "./ownership.ts";
import { type Queue, queueLimits, restMs } from "./queue.ts";
import { Queues } from "./queues.ts";
import { type Picked, Scheduler } from "./scheduler.ts";
import { Sendings } from "./sending.ts";
import type { DeliveryStore, Hint } from "./store.ts";

/** Partners as a worker knows them, at most five seconds old. */
export interface PartnerSource {
  /** Undefined if unknown or too old. Then it is requested, and `partnerChanged` is called when it arrives. */
  peek(id: PartnerId): Partner | undefined;
}

export interface WorkerParts {
  readonly store: DeliveryStore;
  readonly shards: ShardStore;
  readonly circuits: CircuitStore;
  /** The number of homes. Each statement is about partners of one, so that one that is away delays no other. */
  readonly homes: number;
  readonly lease: LeaseHolder;
  readonly partners: PartnerSource;
  readonly attempt: MakeAttempt;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Runs `work` in the next turn of the event loop. */
  readonly inNextTurn: (work: () => void) => void;
  /** From 0 to less than 1. */
  readonly random: () => number;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  /** The timeout of an attempt. */
  readonly attemptTimeoutMs: number;
  /** The time for which nothing is sent, because the egress proxy fails; 0: it may be. */
  readonly heldMs?: () => number;
  readonly onAttempted?: (delivery: Delivery, attempted: AttemptResult) => void;
  readonly onOverdue?: (partnerId: PartnerId, parked: number) => void;
  /** It may own shards now, or may not any more: `isFit`. */
  readonly onFitness?: () => void;
  /** A notification could not be rendered, sealed, sent or recorded, for a reason of ours: it is put off. */
  readonly onFault?: (delivery: Delivery) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** Outcomes are remembered for longer than that: see `endedKeptMs`. */
const offeredWithinMs = 5_000;
const tickMs = 1_000;
/** The map of shards is read less often while nothing changes, because others announce their changes. */
const settledMapMs = 2_000;
const recheckMs = 5_000;
const sweepRestMaxMs = 10_000;
/** Deliveries in memory for each slot: those in flight, and the next ones. */
const rowsPerSlot = 8;
/**
 * Requests and answers are read between the turns of the event loop. Measured: if everything starts in one turn, 300
 * are in flight in place of 40, and a notification costs 7 % more. With 8, a saturated process accepts far ahead of
 * what it sends: 0.3 s pass from the answer to the callback, with 32 less than half of that.
 */
const startsPerTurn = 32;
/** Content that is sealed in one turn: measured, 256 KiB take 3 to 4 ms. */
const sealedBytesPerTurn = 256 * 1_024;

/** A worker's work for the partners of one home. */
interface Home {
  readonly blocked: BlockedQueues;
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
  readonly #scheduler: Scheduler<Queue>;
  readonly #circuits: Circuits;
  readonly ownership: Ownership;
  readonly #sendings: Sendings;
  readonly #homes: readonly Home[];
  /** Partners that were requested and not known at the last tick. */
  #unknown: ReadonlySet<PartnerId> = new Set();
  /** Those that had not arrived by the next tick either: they or their keys cannot be read. */
  #missing: ReadonlySet<PartnerId> = new Set();
  #isPumping = false;
  #isStopping = true;
  #cancelTick: () => void = () => undefined;
  #cancelToken: () => void = () => undefined;
  #ticking: Promise<void> | undefined;
  #tickAgain = false;
  #mapNotBeforeMs = 0;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { slotsMax, bytesInFlightMax: bytesMax, clock, timers, random } = parts;
    const nowMs = () => clock.monotonicMs();
    this.#circuits = new Circuits(random, nowMs);
    this.#scheduler = new Scheduler({ slotsMax, bytesMax, nowMs });
    this.#queues = new Queues({
      store: parts.store,
      homes: parts.homes,
      clock,
      timers,
      rowsMax: slotsMax * rowsPerSlot,
      bytesMax,
      // Partners that it does not own now are not read; the sweep finds their rows when it does.
      limitsOf: (partnerId) =>
        queueLimits(parts.partners.peek(partnerId), this.owns(partnerId), this.#missing.has(partnerId)),
      opensAtMs: (key) => this.#opensAtMs(key),
      onReady: (queue) => this.#schedule(queue),
      onTrouble: parts.onTrouble,
    });
    this.#sendings = new Sendings({
      ...parts,
      queues: this.#queues,
      scheduler: this.#scheduler,
      circuits: this.#circuits,
      epochOf: (partnerId) => this.ownership.epochOf(partnerId),
      onFreed: () => this.#pump(),
      onRoom: (queue) => {
        const isOpen = this.#queues.queuesOf(queue.partnerId).includes(queue);
        if (isOpen && queue.head !== undefined) this.#schedule(queue);
      },
    });
    const blocked = {
      ...parts,
      queues: this.#queues,
      blocked: (key: QueueKey) => this.#blocked(key),
      isBlocked: (delivery: Delivery, { settings }: Partner) => isBlocked(this.#circuits.gateOf(delivery, settings)),
      onParked: (partnerId: PartnerId, parked: number) => parts.onOverdue?.(partnerId, parked),
    };
    this.#homes = Array.from({ length: parts.homes }, () => ({
      blocked: new BlockedQueues(blocked),
      isMaintaining: false,
      sweepNotBeforeMs: 0,
      recheckedMs: 0,
    }));
    this.ownership = new Ownership({
      store: parts.shards,
      homes: parts.homes,
      lease: parts.lease,
      clock,
      timers,
      prepare: (shards) => this.#prepare(shards),
      onReady: (shards) => void this.#sweep(shards),
      windUp: (shards) => this.#sendings.putOff(new Set(shards)),
      isOnWire: (shard) => this.#sendings.isOnWire(shard),
      onFitness: () => parts.onFitness?.(),
      onGone: (shards) => this.#forget(new Set(shards)),
      onTrouble: (error) => parts.onTrouble("shards could not be maintained", error),
    });
  }

  /** The deliveries in memory, for observation. */
  get queues(): Pick<Queues, "partners" | "queuesOf" | "rests"> {
    return this.#queues;
  }

  /** POSTs in flight and their content, deliveries in memory and theirs, and outcomes that are not durable yet. */
  get status() {
    const { slotsInUse: slots, bytes } = this.#scheduler;
    const { rows, bytes: rowsBytes } = this.#queues;
    return { slots, bytes, rows, rowsBytes, unrecorded: this.#sendings.unrecorded, shards: this.ownership.count };
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
    if (isLate) {
      this.#queues.wake(delivery, delivery.scheduleStartMs);
      return;
    }
    const queue = this.#queues.offer(delivery);
    if (queue !== undefined) this.#schedule(queue);
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
   * Starts nothing more, waits for attempts on the wire (bounded), and releases every shard. @returns the number of
   * attempts that were still running: other workers repeat them
   */
  async stop(drainTimeoutMs: number): Promise<number> {
    this.#isStopping = true;
    this.#cancelTick();
    this.#cancelToken();
    await this.#ticking;
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.timers.after(drainTimeoutMs, resolve);
    await Promise.race([this.#sendings.quiet(), timedOut]);
    cancel();
    const left = this.#scheduler.slotsInUse;
    await this.ownership.stop().catch((error) => this.#parts.onTrouble("shards could not be released", error));
    this.#sendings.stop();
    this.#queues.stop();
    return left;
  }

  async #tickOnce(): Promise<void> {
    const { clock } = this.#parts;
    if (!this.ownership.isSettled || clock.monotonicMs() >= this.#mapNotBeforeMs) {
      this.#mapNotBeforeMs = clock.monotonicMs() + settledMapMs;
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
      void home.blocked.scan(heads);
    } catch (error) {
      onTrouble("circuits could not be read again", error);
    } finally {
      home.isMaintaining = false;
    }
  }

  async #prepare(shards: readonly number[]): Promise<void> {
    const loaded = await this.#parts.circuits.load(shards);
    // Knowledge from an earlier ownership is older than the changes of the owner in between.
    const claimed = new Set(shards);
    this.#circuits.forget((partnerId) => claimed.has(shardOf(partnerId)));
    this.#circuits.load(loaded);
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
      const restsUntilMs = nowMs + restMs(nowMs - startedMs, sweepRestMaxMs);
      home.sweepNotBeforeMs = Math.max(home.sweepNotBeforeMs, restsUntilMs);
    }
  }

  #blocked(key: QueueKey): BlockedQueue | undefined {
    const { partnerId } = key;
    const partner = this.#parts.partners.peek(partnerId);
    if (this.#isStopping || partner?.state !== "active" || !this.owns(partnerId)) return undefined;
    const gate = this.#circuits.gateOfQueue(key, partner.settings);
    return isBlocked(gate) ? { partner, reason: gate.reason } : undefined;
  }

  #opensAtMs(key: QueueKey): number | undefined {
    const gate = this.#circuits.gateOfQueue(key, this.#parts.partners.peek(key.partnerId)?.settings);
    return isBlocked(gate) ? gate.untilMs : Number.NEGATIVE_INFINITY;
  }

  #schedule(queue: Queue): void {
    const partner = this.#parts.partners.peek(queue.partnerId);
    // One that was just requested arrives shortly.
    if (partner === undefined && !this.#missing.has(queue.partnerId)) return;
    if (partner?.state !== "active") {
      this.#forgetReady(queue);
      return;
    }
    const { maxInFlight, maxPerSecond } = partner.settings;
    this.#scheduler.add(queue, { maxInFlight, maxPerSecond, ownedSinceMs: this.ownership.sinceMs(queue.partnerId) });
    this.#pump();
  }

  /** Nothing of it is sent now, and it takes no memory from other partners: it is read again when it may be sent. */
  #forgetReady(queue: Queue): void {
    this.#scheduler.remove(queue);
    this.#queues.forgetReady(queue);
  }

  /** Their rows take no memory from others. */
  #forgetMissing(): void {
    const { partners } = this.#parts;
    const unknown = this.#queues.partners().filter((partnerId) => partners.peek(partnerId) === undefined);
    this.#missing = new Set(unknown.filter((partnerId) => this.#unknown.has(partnerId)));
    this.#unknown = new Set(unknown);
    for (const partnerId of this.#missing) {
      for (const queue of this.#queues.queuesOf(partnerId)) if (queue.head !== undefined) this.#forgetReady(queue);
    }
  }

  /** Starts what may start, once for all events of one turn. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => this.#startSome());
  }

  #startSome(): void {
    this.#isPumping = false;
    this.#cancelToken();
    const heldMs = this.#isStopping ? 0 : (this.#parts.heldMs?.() ?? 0);
    if (heldMs > 0) {
      this.#cancelToken = this.#parts.timers.after(Math.ceil(heldMs), () => this.#pump());
      return;
    }
    // A recorded outcome pumps again.
    const mayBegin = () => !this.#isStopping && this.#sendings.mayBegin;
    let sealedBytes = 0;
    for (let started = 0; mayBegin(); started += 1) {
      if (started === startsPerTurn || sealedBytes >= sealedBytesPerTurn) {
        this.#isPumping = true;
        this.#parts.inNextTurn(() => this.#startSome());
        return;
      }
      const picked = this.#scheduler.next();
      if (picked === undefined) break;
      sealedBytes += picked.queue.head?.bytes ?? 0;
      this.#begin(picked);
    }
    const tokenInMs = mayBegin() ? this.#scheduler.tokenInMs() : undefined;
    if (tokenInMs !== undefined) {
      this.#cancelToken = this.#parts.timers.after(Math.max(1, tokenInMs), () => this.#pump());
    }
  }

  /** Sends the head of a queue, unless its owner, partner or endpoint has changed by now. */
  #begin({ queue, slot }: Picked<Queue>): void {
    const { partnerId, head } = queue;
    const epoch = this.ownership.epochOf(partnerId);
    const leaseId = this.#parts.lease.current();
    const partner = this.#parts.partners.peek(partnerId);
    if (epoch === undefined || leaseId === undefined || partner?.state !== "active") {
      this.#scheduler.end(slot, false);
      this.#forgetReady(queue);
      return;
    }
    const gate = head === undefined ? "open" : this.#circuits.gateOf(head, partner.settings);
    if (isBlocked(gate)) {
      this.#scheduler.end(slot, false);
      this.#skip(queue, partner, gate);
      return;
    }
    if (this.#sendings.holds(queue)) {
      this.#scheduler.remove(queue);
      this.#scheduler.end(slot, false);
      return;
    }
    const delivery = this.#queues.startHead(queue);
    if (queue.head === undefined) this.#scheduler.remove(queue);
    if (delivery === undefined) {
      this.#scheduler.end(slot, false);
      return;
    }
    const deadlineMs = this.#parts.clock.monotonicMs() + this.#parts.attemptTimeoutMs;
    this.#sendings.begin({ delivery, partner, slot, epoch, leaseId, isProbe: gate === "probe", deadlineMs });
  }

  /**
   * The URL of a queue's head accepts nothing, so it and others like it leave memory. If the queue is not read either,
   * they are read again when it is. Otherwise they are put off, so that they block nobody behind them.
   */
  #skip(queue: Queue, partner: Partner, { reason }: BlockedGate): void {
    const { partnerId, name } = queue;
    const which = (delivery: Delivery) => isBlocked(this.#circuits.gateOf(delivery, partner.settings));
    const isRead = !isBlocked(this.#circuits.gateOfQueue({ partnerId, queue: name }, partner.settings));
    if (!isRead) this.#queues.forgetReady(queue, which);
    else void this.#homeOf(shardOf(partnerId)).blocked.putOff(queue.takeReady(which), partner, reason);
    if (queue.head === undefined) this.#scheduler.remove(queue);
    this.#pump();
  }

  #forget(shards: ReadonlySet<number>): void {
    for (const partnerId of this.#queues.partners()) {
      if (!shards.has(shardOf(partnerId))) continue;
      for (const queue of this.#queues.queuesOf(partnerId)) this.#scheduler.remove(queue);
      this.#queues.forgetPartner(partnerId);
    }
    this.#scheduler.forgetRates((partnerId) => shards.has(shardOf(partnerId)));
    this.#circuits.forget((partnerId) => shards.has(shardOf(partnerId)));
  }
}
