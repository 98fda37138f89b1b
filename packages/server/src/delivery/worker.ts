import type { Clock, Timers } from "../clock.ts";
import type { LeaseId, NotificationId, PartnerId } from "../ids.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import type { Partner } from "../partners/partner.ts";
import { shardOf } from "../shard.ts";
import type { Attempted, Attempting, PartnerSource } from "./attempting.ts";
import { callbackUrlOf } from "./callback-url.ts";
import type { CircuitStore } from "./circuit-store.ts";
import { Circuits, urlQueue } from "./circuits.ts";
import { DeliveryOrder, keyOf, leftMs } from "./order.ts";
import { type BlockedQueue, Overdue } from "./overdue.ts";
import { Ownership } from "./ownership.ts";
import { type Queue, restMs } from "./queue.ts";
import { queueLimits } from "./queue-limits.ts";
import { Queues } from "./queues.ts";
import { overdueAfterMs } from "./schedule.ts";
import { type Picked, Scheduler, type Slot } from "./scheduler.ts";
import type { ShardStore } from "./shard-store.ts";
import type { Delivery, DeliveryOutcome, DeliveryStore, Hint, QueueKey } from "./store.ts";

export interface WorkerParts {
  readonly store: DeliveryStore;
  readonly shards: ShardStore;
  readonly circuits: CircuitStore;
  readonly lease: LeaseHolder;
  readonly partners: PartnerSource;
  readonly attempt: Attempting;
  readonly clock: Clock;
  readonly timers: Timers;
  /** From 0 to less than 1. */
  readonly random: () => number;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  /** The timeout of an attempt. */
  readonly attemptTimeoutMs: number;
  readonly onAttempted?: (delivery: Delivery, attempted: Attempted) => void;
  readonly onOverdue?: (parked: number) => void;
  /** Its shards have changed. */
  readonly onShards?: (shards: readonly number[]) => void;
  readonly onBehind?: (key: QueueKey, isBehind: boolean) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** One running attempt. */
interface Sending {
  readonly delivery: Delivery;
  readonly partner: Partner;
  readonly slot: Slot;
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly isProbe: boolean;
}

/** Outcomes are remembered for longer than that: see `endedKeptMs`. */
const offeredWithinMs = 5_000;
const tickMs = 1_000;
const recheckMs = 5_000;
const overdueEveryMs = 10_000;
const sweepRestMaxMs = 10_000;
/** Deliveries in memory for each slot: those in flight, and the next ones. */
const rowsPerSlot = 8;
/** Beyond this many unrecorded outcomes per slot nothing starts: a slow database stops the sending. */
const unrecordedPerSlot = 4;
/** The time for recording the outcome of an attempt during which its shard is released. */
const recordingMs = 1_000;
/** The rest of a delivery whose outcome could not be stored, before it is sent again. */
const unstorableMs = 30_000;

/**
 * Sends the pending notifications of the partners of its shards, and is the only one that does: order, rate, circuits
 * and fair shares are decided in its memory. It reads without locks, and each outcome changes only the very round and
 * attempt that it belongs to. A delivery: due → queued (`queues.ts`) → sending → accepted, due again, or parked
 * (docs/internals/delivery.md).
 */
export class DeliveryWorker {
  readonly #parts: WorkerParts;
  readonly #queues: Queues;
  readonly #scheduler: Scheduler<Queue>;
  readonly #circuits: Circuits;
  readonly #order: DeliveryOrder;
  readonly ownership: Ownership;
  /** On the wire or unrecorded, with the time by which the attempt has ended. */
  readonly #sending = new Map<NotificationId, { readonly delivery: Delivery; readonly deadlineMs: number }>();
  readonly #overdue: Overdue;
  #unrecorded = 0;
  #isPumping = false;
  #isStopping = true;
  #cancels: (() => void)[] = [];
  #cancelToken: () => void = () => undefined;
  #ticking: Promise<void> | undefined;
  #tickAgain = false;
  #sweepNotBeforeMs = 0;
  #recheckedMs = 0;
  #parkedOverdueMs = 0;
  #onQuiet: () => void = () => undefined;

  constructor(parts: WorkerParts) {
    this.#parts = parts;
    const { slotsMax, bytesInFlightMax: bytesMax, clock, timers, random } = parts;
    const nowMs = () => clock.monotonicMs();
    this.#circuits = new Circuits(random, nowMs);
    this.#overdue = new Overdue(parts.store, (parked) => parts.onOverdue?.(parked));
    this.#scheduler = new Scheduler({ slotsMax, bytesMax, nowMs });
    this.#queues = new Queues({
      store: parts.store,
      clock,
      timers,
      rowsMax: slotsMax * rowsPerSlot,
      bytesMax,
      // Partners that it does not own now are not read; the sweep finds their rows when it does.
      limitsOf: (partnerId) =>
        queueLimits(parts.partners.peek(partnerId), this.ownership.epochOf(partnerId) !== undefined),
      opensAtMs: (key) => this.#opensAtMs(key),
      onReady: (queue) => this.#schedule(queue),
      onReleased: (id) => this.#order.ended(id),
      onFollowing: (deliveries) => this.#order.check(deliveries),
      onBehind: (key, isBehind) => parts.onBehind?.(key, isBehind),
      onTrouble: (error) => parts.onTrouble("what is due could not be read", error),
    });
    this.#order = new DeliveryOrder({
      store: parts.store,
      clock,
      timers,
      isInHand: (id) => this.#queues.has(id),
      holds: (delivery) => this.#queues.holds(delivery),
      onMayLeave: (delivery) => this.#queues.mayLeave(delivery),
      onPutOff: (delivery, delayMs) => this.#queues.release(delivery, delayMs),
      onGone: (delivery) => this.#queues.release(delivery),
      onTrouble: (error) => parts.onTrouble("the order of notifications could not be looked up", error),
    });
    this.ownership = new Ownership({
      store: parts.shards,
      lease: parts.lease,
      clock,
      timers,
      prepare: (shards) => this.#prepare(shards),
      onReady: (shards) => {
        parts.onShards?.(this.ownership.ready);
        void this.#sweep(shards);
      },
      windUp: (shards) => {
        parts.onShards?.(this.ownership.ready);
        return this.#windUp(new Set(shards));
      },
      onGone: (shards) => {
        parts.onShards?.(this.ownership.ready);
        this.#forget(new Set(shards));
      },
      onTrouble: (error) => parts.onTrouble("shards could not be looked after", error),
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
    return { slots, bytes, rows, rowsBytes, unrecorded: this.#unrecorded, shards: this.ownership.count };
  }

  start(): void {
    this.#isStopping = false;
    this.tick();
  }

  /**
   * Deliveries that were just made durable. Those of other workers' partners are left to them.
   *
   * @param begunMs by the monotonic clock, before the first of them was written. A sweep may have found them long ago
   * if this process stalled, or its database answered late: then they are read again.
   */
  offer(deliveries: readonly Delivery[], begunMs: number): void {
    const isLate = this.#parts.clock.monotonicMs() - begunMs > offeredWithinMs;
    for (const delivery of deliveries) {
      if (this.ownership.epochOf(delivery.partnerId) === undefined) continue;
      if (isLate) this.#queues.wake(delivery, delivery.scheduleStartMs);
      else this.#queues.offer(delivery);
    }
  }

  /** Something of these queues is due; any of the partner's, if none is named. */
  wake(hints: readonly Hint[]): void {
    for (const { partnerId, queue, sinceMs } of hints) {
      if (this.ownership.epochOf(partnerId) === undefined) continue;
      if (queue !== undefined) this.#queues.wake({ partnerId, queue }, sinceMs);
      else void this.#sweep([shardOf(partnerId)]);
    }
  }

  /** The partner is known now, or has changed. */
  partnerChanged(partnerId: PartnerId): void {
    this.#queues.reconsider(partnerId);
  }

  /** A person changed a circuit. */
  circuitsChanged(): void {
    this.#recheckedMs = Number.NEGATIVE_INFINITY;
    this.tick();
  }

  /** The lease is lost: attempts on the wire end, their outcomes are recorded, and nothing else starts. */
  leaseLost(): void {
    this.ownership.lose();
  }

  /** Settles shards and circuits, and finds rows that hints missed: each second, and on request. */
  tick(): void {
    if (this.#isStopping) return;
    if (this.#ticking !== undefined) {
      this.#tickAgain = true;
      return;
    }
    this.#cancel();
    this.#ticking = this.#tickOnce()
      .catch((error: unknown) => this.#parts.onTrouble("pending deliveries could not be looked after", error))
      .finally(() => {
        this.#ticking = undefined;
        if (this.#isStopping) return;
        const cancel = this.#parts.timers.after(this.#tickAgain ? 0 : tickMs, () => this.tick());
        this.#tickAgain = false;
        this.#cancels.push(cancel);
      });
  }

  /**
   * Starts nothing more, waits for attempts on the wire (bounded), and releases every shard. @returns the number of
   * attempts that were still running: other workers repeat them
   */
  async stop(drainTimeoutMs: number): Promise<number> {
    this.#isStopping = true;
    this.#cancel();
    this.#cancelToken();
    await this.#ticking;
    const { promise: timedOut, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.timers.after(drainTimeoutMs, resolve);
    const quiet = new Promise<void>((done) => {
      this.#onQuiet = done;
      if (this.#sending.size === 0) done();
    });
    await Promise.race([quiet, timedOut]);
    cancel();
    const left = this.#scheduler.slotsInUse;
    await this.ownership.stop().catch((error) => this.#parts.onTrouble("shards could not be given up", error));
    this.#queues.stop();
    return left;
  }

  #cancel(): void {
    for (const cancel of this.#cancels.splice(0)) cancel();
  }

  async #tickOnce(): Promise<void> {
    const { clock } = this.#parts;
    await this.ownership.tick();
    if (clock.monotonicMs() - this.#recheckedMs >= recheckMs) await this.#recheckCircuits();
    if (clock.monotonicMs() < this.#sweepNotBeforeMs) return;
    const heads = await this.#sweep(this.ownership.ready, true);
    if (clock.monotonicMs() - this.#parkedOverdueMs >= overdueEveryMs) void this.#parkOverdue(heads);
  }

  async #prepare(shards: readonly number[]): Promise<void> {
    const loaded = await this.#parts.circuits.load(shards);
    // Knowledge from an earlier ownership is older than the changes of the owner in between.
    const taken = new Set(shards);
    this.#circuits.forget((partnerId) => taken.has(shardOf(partnerId)));
    this.#circuits.load(loaded);
  }

  async #recheckCircuits(): Promise<void> {
    this.#recheckedMs = this.#parts.clock.monotonicMs();
    const changed = this.#circuits.load(await this.#parts.circuits.loadChangedByHand(this.ownership.ready));
    for (const { partnerId } of changed) this.#queues.reconsider(partnerId);
  }

  async #sweep(shards: readonly number[], leavesRecent = false): Promise<readonly QueueKey[]> {
    if (shards.length === 0) return [];
    const { clock, onTrouble } = this.#parts;
    const startedMs = clock.monotonicMs();
    try {
      const owns = (partnerId: PartnerId) => this.ownership.epochOf(partnerId) !== undefined;
      return await this.#queues.sweep(shards, owns, leavesRecent);
    } catch (error) {
      onTrouble("what is due could not be looked for", error);
      return [];
    } finally {
      const nowMs = clock.monotonicMs();
      // A sweep of a few shards is short, and shortens no rest.
      const restsUntilMs = nowMs + restMs(nowMs - startedMs, sweepRestMaxMs);
      this.#sweepNotBeforeMs = Math.max(this.#sweepNotBeforeMs, restsUntilMs);
    }
  }

  /** Parks deliveries for endpoints that accept nothing when their schedule is over. */
  async #parkOverdue(queues: readonly QueueKey[]): Promise<void> {
    // However many queues there are, the next round begins after this one has ended.
    this.#parkedOverdueMs = Number.POSITIVE_INFINITY;
    try {
      await this.#overdue.parkDue(queues, (key) => this.#shut(key));
    } catch (error) {
      this.#parts.onTrouble("what is overdue could not be parked", error);
    }
    this.#parkedOverdueMs = this.#parts.clock.monotonicMs();
  }

  #shut({ partnerId, queue }: QueueKey): BlockedQueue | undefined {
    const partner = this.#parts.partners.peek(partnerId);
    if (this.#isStopping || partner === undefined || this.ownership.epochOf(partnerId) === undefined) return undefined;
    const gate = this.#circuits.gate({ partnerId, queue }, partner.settings.callBackUrl);
    if (typeof gate === "string" || partner.state !== "active") return undefined;
    return { scheduleMs: overdueAfterMs(partner, this.#parts.clock.nowMs()), reason: gate.reason };
  }

  #opensAtMs(key: QueueKey): number | undefined {
    const partner = this.#parts.partners.peek(key.partnerId);
    const gate = this.#circuits.gate(key, partner?.settings.callBackUrl ?? null);
    return typeof gate === "string" ? Number.NEGATIVE_INFINITY : gate.untilMs;
  }

  #schedule(queue: Queue): void {
    const partner = this.#parts.partners.peek(queue.partnerId);
    if (partner?.state !== "active") return;
    const { maxInFlight, maxPerSecond } = partner.settings;
    this.#scheduler.add(queue, { maxInFlight, maxPerSecond, ownedSinceMs: this.ownership.sinceMs(queue.partnerId) });
    this.#pump();
  }

  /** Starts everything that may start, once for all events of one turn. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => {
      this.#isPumping = false;
      this.#cancelToken();
      // A recorded outcome pumps again.
      const mayBegin = () => !this.#isStopping && this.#unrecorded < this.#parts.slotsMax * unrecordedPerSlot;
      while (mayBegin()) {
        const picked = this.#scheduler.next();
        if (picked === undefined) break;
        this.#begin(picked);
      }
      const tokenInMs = mayBegin() ? this.#scheduler.tokenInMs() : undefined;
      if (tokenInMs !== undefined) {
        this.#cancelToken = this.#parts.timers.after(Math.max(1, tokenInMs), () => this.#pump());
      }
    });
  }

  /** Sends the head of a queue, unless its owner, partner or endpoint has changed by now. */
  #begin({ queue, slot }: Picked<Queue>): void {
    const { partnerId, name } = queue;
    const epoch = this.ownership.epochOf(partnerId);
    const leaseId = this.#parts.lease.current();
    const partner = this.#parts.partners.peek(partnerId);
    const gate = this.#circuits.gate({ partnerId, queue: name }, partner?.settings.callBackUrl ?? null);
    if (epoch === undefined || leaseId === undefined || partner?.state !== "active" || typeof gate !== "string") {
      this.#scheduler.remove(queue);
      this.#scheduler.end(slot, false);
      this.#queues.forgetReady(queue);
      return;
    }
    const delivery = this.#queues.startHead(queue);
    if (queue.head === undefined) this.#scheduler.remove(queue);
    if (delivery === undefined) {
      this.#scheduler.end(slot, false);
      return;
    }
    const ownUrl = delivery.toRegistered ? null : delivery.callBackUrl;
    if (name !== "" && !name.includes(" ") && this.#circuits.isGone(partnerId, ownUrl)) {
      this.#scheduler.end(slot, false);
      return void this.#setAside(delivery, ownUrl ?? "");
    }
    const url = callbackUrlOf(delivery, partner);
    if (gate === "probe" && url !== null) this.#circuits.probeBegins(url, delivery);
    const deadlineMs = this.#parts.clock.monotonicMs() + this.#parts.attemptTimeoutMs;
    this.#sending.set(delivery.id, { delivery, deadlineMs });
    void this.#send({ delivery, partner, slot, epoch, leaseId, isProbe: gate === "probe" });
  }

  async #send(sending: Sending): Promise<void> {
    const { delivery, partner, slot, epoch, leaseId, isProbe } = sending;
    const { partnerId, id } = delivery;
    const attempted = await this.#parts.attempt(delivery, partner, {
      outOfOrder: this.#order.isOutOfOrder(id),
      mayWrite: () => this.#parts.lease.current() === leaseId && this.ownership.epochOf(partnerId) !== undefined,
    });
    this.#circuits.probeEnded(delivery);
    if ("putOffMs" in attempted) {
      this.#scheduler.end(slot, false);
      if (isProbe) this.#queues.reconsider(partnerId);
      this.#pump();
      return this.#putOff(delivery, attempted.putOffMs);
    }
    const { attempt, retryAfterMs = null } = attempted;
    // An attempt of an earlier ownership says nothing: the circuit belongs to another worker, or was loaded again.
    const isOwned = this.ownership.epochOf(partnerId) === epoch;
    const circuits = isOwned ? this.#circuits.observe({ partnerId, attempt, retryAfterMs, isProbe, epoch }) : [];
    this.#scheduler.end(slot, true);
    this.#unrecorded += 1;
    this.#parts.onAttempted?.(delivery, attempted);
    // Nothing was read while it was probed.
    const isClosed = circuits.some(({ circuit, event }) => event !== null && circuit.state === "closed");
    if (isProbe || isClosed) this.#queues.reconsider(partnerId);
    this.#pump();
    await this.#record(delivery, { ...keyOf(delivery), leaseId, attempt, next: attempted.next, circuits });
  }

  async #record(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    const { clock } = this.#parts;
    const sentMs = clock.monotonicMs();
    try {
      const recorded = await this.#parts.store.record(outcome);
      this.#unrecorded -= 1;
      const isDueAgain = outcome.next.kind === "retry" && recorded === "applied";
      const againInMs = isDueAgain ? leftMs(outcome.next.delayMs, sentMs, clock) : undefined;
      this.#queues.ended(delivery, recorded, againInMs);
    } catch (error) {
      this.#unrecorded -= 1;
      this.#parts.onTrouble("an outcome could not be stored; its notification is sent again", error);
      this.#queues.rest(delivery, unstorableMs);
    }
    this.#end(delivery);
  }

  async #putOff(delivery: Delivery, delayMs: number): Promise<void> {
    const putOff = this.#parts.store.putOff([{ ...keyOf(delivery), delayMs }]);
    await this.#release(delivery, putOff, "a delivery could not be put off", delayMs);
  }

  /** Its own URL is gone: it waits in the queue of that URL. */
  async #setAside(delivery: Delivery, url: string): Promise<void> {
    const setAside = this.#parts.store.setAside([{ ...keyOf(delivery), queue: urlQueue(url) }]);
    await this.#release(delivery, setAside, "a delivery could not be set aside");
  }

  async #release(delivery: Delivery, written: Promise<void>, trouble: string, delayMs?: number): Promise<void> {
    const { clock } = this.#parts;
    const sentMs = clock.monotonicMs();
    try {
      await written;
      this.#queues.release(delivery, delayMs === undefined ? undefined : leftMs(delayMs, sentMs, clock));
    } catch (error) {
      this.#parts.onTrouble(trouble, error);
      this.#queues.releaseUnchanged(delivery);
    }
    this.#end(delivery);
  }

  #end(delivery: Delivery): void {
    // Not the attempt of a later ownership, which may be in flight again.
    if (this.#sending.get(delivery.id)?.delivery === delivery) this.#sending.delete(delivery.id);
    this.#pump();
    if (this.#sending.size === 0) this.#onQuiet();
  }

  /** Deliveries on the wire, or unrecorded, become due for the next owner when their attempt has certainly ended. */
  async #windUp(shards: ReadonlySet<number>): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    const late = [...this.#sending.values()].flatMap(({ delivery, deadlineMs }) =>
      shards.has(shardOf(delivery.partnerId))
        ? [{ ...keyOf(delivery), delayMs: Math.max(0, deadlineMs - nowMs) + recordingMs }]
        : [],
    );
    if (late.length > 0) await this.#parts.store.putOff(late);
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
