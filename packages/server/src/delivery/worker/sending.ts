import type { Clock, Timers } from "../../clock.ts";
import { homeOf, type LeaseId, type NotificationId, type PartnerId, shardOf } from "../../ids.ts";
import type { LeaseHolder } from "../../leases/lease.ts";
import { callbackUrlOf, isRegistered } from "../../notification.ts";
import type { Partner } from "../../partners/partner.ts";
import type { AttemptResult, MakeAttempt } from "../attempt/attempt.ts";
import type { Delivery } from "../delivery.ts";
import { type BlockedGate, type CircuitChange, type Circuits, isBlocked } from "../limits/circuits.ts";
import { type Picked, Scheduler, type Slot } from "../limits/scheduler.ts";
import type { Queue } from "../queues/queue.ts";
import type { Queues } from "../queues/queues.ts";
import { type DeliveryStore, keyOf, leftMs, type Recorded } from "../store.ts";
import type { BlockedQueues } from "./blocked-queues.ts";
import type { Ownership } from "./ownership.ts";
import type { PartnerSource } from "./partners.ts";

export interface SendingParts {
  readonly store: Pick<DeliveryStore, "record" | "postpone">;
  /** The number of homes. Each statement is about partners of one, so that one that is away delays no other. */
  readonly homes: number;
  readonly lease: LeaseHolder;
  readonly partners: PartnerSource;
  readonly attempt: MakeAttempt;
  readonly clock: Clock;
  readonly timers: Timers;
  /** Runs `work` in the next turn of the event loop. */
  readonly inNextTurn: (work: () => void) => void;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  /** Ends what is on the wire: a stop has no time left for it. */
  readonly abort?: () => void;
  /** The time for which nothing is sent, because the egress proxy fails; 0: it may be. */
  readonly egressWaitMs?: () => number;
  readonly onAttempted?: (delivery: Delivery, attempted: AttemptResult) => void;
  /** A notification could not be rendered, sealed, sent or recorded, for a reason of ours: it is postponed. */
  readonly onFault?: (delivery: Delivery) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/** The other machines of the worker. */
interface Peers {
  readonly queues: Queues;
  readonly circuits: Circuits;
  readonly ownership: Ownership;
  readonly blocked: BlockedQueues;
}

/** A delivery that has left its queue. */
interface Sending {
  readonly delivery: Delivery;
  readonly slot: Slot;
  /** The epoch of the partner's shard. */
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly isProbe: boolean;
  isOnWire: boolean;
}

/** The outcomes of one home, and the queues that wait for some of them to be recorded. */
interface HomeShare {
  unrecorded: number;
  readonly throttled: Set<Queue>;
}

/**
 * Requests and answers are read between the turns of the event loop. Measured: if everything starts in one turn, 300
 * are in flight in place of 40, and a notification costs 7 % more. With 8, a saturated process accepts far ahead of
 * what it sends: 0.3 s pass from the answer to the callback, with 32 less than half of that.
 */
const startsPerTurn = 32;
/** Content that is sealed in one turn: measured, 256 KiB take 3 to 4 ms. */
const sealedBytesPerTurn = 256 * 1_024;
/**
 * Beyond this many unrecorded outcomes per slot nothing begins: a slow database stops the sending. Each home has an
 * even share of them.
 */
const unrecordedPerSlot = 4;
/** The rest of a delivery that cannot be handled, or whose outcome could not be stored. */
const restMs = 30_000;

/**
 * Sends what is ready in the queues of a worker, one attempt for each notification at a time.
 *
 * ```
 * queued ──(slot)──► on the wire ──(an answer, or none)──► being recorded ──► accepted, due again, or parked
 *                    on the wire ──(nothing was written)──► being postponed ──► due again
 * on the wire, being recorded ──(an error of ours)──► rests for 30 s, with an event ──► due as before
 * ```
 *
 * A delivery is one reading of its row. If its shard is lost, the attempt continues: its outcome is recorded, ends
 * nothing that was read later, and changes no circuit; a stop waits for it.
 */
export class Sendings {
  readonly #parts: SendingParts;
  readonly #peers: Peers;
  readonly #scheduler: Scheduler<Queue>;
  readonly #sending = new Map<NotificationId, Sending>();
  readonly #homes: readonly HomeShare[];
  #isPumping = false;
  #isClosed = false;
  #isStopped = false;
  #cancelPump: () => void = () => undefined;
  #onQuiet: () => void = () => undefined;

  constructor(parts: SendingParts, peers: Peers) {
    this.#parts = parts;
    this.#peers = peers;
    const { slotsMax, bytesInFlightMax: bytesMax, clock, homes } = parts;
    this.#scheduler = new Scheduler({ slotsMax, bytesMax, nowMs: () => clock.monotonicMs() });
    this.#homes = Array.from({ length: homes }, () => ({ unrecorded: 0, throttled: new Set() }));
  }

  /** POSTs in flight and their content, and outcomes that are not durable yet. */
  get status() {
    const { slotsInUse: slots, bytes } = this.#scheduler;
    return { slots, bytes, unrecorded: this.#unrecorded };
  }

  /** The queue has something to send. */
  schedule(queue: Queue): void {
    const partner = this.#parts.partners.cached(queue.partnerId);
    // One that was just requested arrives shortly.
    if (partner === undefined) return;
    if (partner.state !== "active") {
      this.#peers.queues.forgetReady(queue);
      return;
    }
    const { maxInFlight, maxPerSecond } = partner.settings;
    const ownedSinceMs = this.#peers.ownership.sinceMs(queue.partnerId);
    this.#scheduler.add(queue, { maxInFlight, maxPerSecond, ownedSinceMs });
    this.#pump();
  }

  /** The shards of these partners are lost. */
  forget(isGone: (partnerId: PartnerId) => boolean): void {
    const { queues } = this.#peers;
    for (const partnerId of queues.partners().filter(isGone)) queues.forgetPartner(partnerId);
    this.#scheduler.forgetRates(isGone);
  }

  /** The shards with an attempt that is not answered, or whose outcome is not recorded, yet. */
  busyShards(until: "answered" | "recorded"): ReadonlySet<number> {
    const busy = [...this.#sending.values()].filter(({ isOnWire }) => isOnWire || until === "recorded");
    return new Set(busy.map(({ delivery }) => shardOf(delivery.partnerId)));
  }

  /** Starts nothing more. */
  close(): void {
    this.#isClosed = true;
    this.#cancelPump();
  }

  /** Resolves when nothing is on the wire or unrecorded, or the time is over. @returns the attempts still running */
  async drain(timeoutMs: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>();
    const cancel = this.#parts.timers.after(timeoutMs, resolve);
    this.#onQuiet = resolve;
    if (this.#sending.size === 0) resolve();
    await promise;
    cancel();
    return this.#scheduler.slotsInUse;
  }

  /** Aborts what is still on the wire, and records none of it: the next owner sends it again. */
  stop(): void {
    this.#isStopped = true;
    this.#parts.abort?.();
  }

  /** Starts what may start, once for all events of one turn. */
  #pump(): void {
    if (this.#isPumping) return;
    this.#isPumping = true;
    queueMicrotask(() => this.#startSome());
  }

  #startSome(): void {
    this.#isPumping = false;
    this.#cancelPump();
    if (this.#isClosed) return;
    const egressWaitMs = this.#parts.egressWaitMs?.() ?? 0;
    if (egressWaitMs > 0) {
      this.#pumpIn(Math.ceil(egressWaitMs));
      return;
    }
    let sealedBytes = 0;
    // A recorded outcome pumps again.
    const mayBegin = () => this.#unrecorded < this.#unrecordedMax;
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
    if (tokenInMs !== undefined) this.#pumpIn(Math.max(1, tokenInMs));
  }

  #pumpIn(ms: number): void {
    this.#cancelPump = this.#parts.timers.after(ms, () => this.#pump());
  }

  /** Sends the head of a queue, unless its owner, partner or endpoint has changed by now. */
  #begin({ queue, slot }: Picked<Queue>): void {
    const { partners, lease } = this.#parts;
    const { queues, circuits, ownership } = this.#peers;
    const { partnerId, head } = queue;
    const epoch = ownership.epochOf(partnerId);
    const leaseId = lease.current();
    const partner = partners.cached(partnerId);
    if (epoch === undefined || leaseId === undefined || partner?.state !== "active") {
      this.#scheduler.end(slot, false);
      // Its partner takes no memory from others: it is read again when it may be sent.
      queues.forgetReady(queue);
      return;
    }
    const gate = head === undefined ? "passes" : circuits.gateOf(head, partner.settings);
    if (isBlocked(gate)) {
      this.#scheduler.end(slot, false);
      this.#skip(queue, partner, gate);
      return;
    }
    const delivery = this.#isThrottled(queue) ? undefined : queues.startHead(queue);
    if (delivery === undefined) {
      this.#scheduler.remove(queue);
      this.#scheduler.end(slot, false);
      return;
    }
    const sending = { delivery, slot, epoch, leaseId, isProbe: gate === "probe", isOnWire: true };
    this.#send(sending, partner).catch((error: unknown) => this.#failed(sending, error));
  }

  /**
   * The URL of a queue's head accepts nothing, so it and others like it leave memory. If the queue is not read either,
   * they are read again when it is. Otherwise they are postponed, so that they block nobody behind them.
   */
  #skip(queue: Queue, partner: Partner, { reason }: BlockedGate): void {
    const { queues, circuits, blocked } = this.#peers;
    const { partnerId, name } = queue;
    const which = (delivery: Delivery) => isBlocked(circuits.gateOf(delivery, partner.settings));
    const isRead = !isBlocked(circuits.gateOfQueue({ partnerId, queue: name }, partner.settings));
    if (!isRead) queues.forgetReady(queue, which);
    else void blocked.postpone(queue.takeReady(which), partner, reason);
  }

  /** Whether its home has its share of unrecorded outcomes. Then the queue waits until some are recorded. */
  #isThrottled(queue: Queue): boolean {
    const home = this.#homeOf(queue);
    if (home.unrecorded < this.#unrecordedMax / this.#homes.length) return false;
    home.throttled.add(queue);
    return true;
  }

  async #send(sending: Sending, partner: Partner): Promise<void> {
    const { lease } = this.#parts;
    const { circuits, queues, ownership } = this.#peers;
    const { delivery, slot, leaseId, isProbe } = sending;
    const { partnerId } = delivery;
    const url = callbackUrlOf(delivery, partner.settings);
    if (isProbe && url !== null) circuits.probeBegins(url, delivery);
    this.#sending.set(delivery.id, sending);
    const attempted = await this.#parts.attempt(delivery, partner, {
      outOfOrder: queues.isOutOfOrder(delivery),
      mayWrite: () => !this.#isStopped && lease.current() === leaseId && ownership.epochOf(partnerId) !== undefined,
    });
    if (this.#isStopped) return;
    sending.isOnWire = false;
    circuits.probeEnded(delivery);
    if ("postponeMs" in attempted) {
      this.#scheduler.end(slot, false);
      if (isProbe) queues.reconsider(partnerId);
      this.#pump();
      return this.#postpone(delivery, attempted.postponeMs);
    }
    const changes = this.#observe(sending, partner, attempted);
    // First of all: no error in what follows may lose the partner's answer.
    const recorded = this.#record(sending, attempted, changes);
    this.#scheduler.end(slot, true);
    this.#guarded("an attempt could not be reported", () => this.#report(delivery, attempted));
    // Nothing was read while it was probed.
    const isClosed = changes.some(({ circuit }) => circuit.state === "closed");
    if (isProbe || isClosed) {
      this.#guarded("a probed endpoint could not be read for", () => queues.reconsider(partnerId));
    }
    this.#pump();
    return recorded;
  }

  /** @returns the changes of circuits by an attempt */
  #observe({ delivery, epoch, isProbe }: Sending, partner: Partner, attempted: AttemptResult) {
    const { circuits, ownership } = this.#peers;
    const { attempt, retryAfterMs = null } = attempted;
    const { partnerId } = delivery;
    // An attempt of an earlier ownership says nothing: the circuit belongs to another worker, or was loaded again.
    if (ownership.epochOf(partnerId) !== epoch) return [];
    const observed = { partnerId, attempt, retryAfterMs, isProbe, epoch };
    const observe = () => circuits.observe({ ...observed, isRegistered: isRegistered(partner.settings, attempt.url) });
    return this.#guarded("the circuits of an attempt could not be changed", observe) ?? [];
  }

  /** An error of ours beside a partner's answer: it is reported, and keeps no outcome from being recorded. */
  #guarded<T>(trouble: string, work: () => T): T | undefined {
    try {
      return work();
    } catch (error) {
      this.#parts.onTrouble(trouble, error);
      return undefined;
    }
  }

  #report(delivery: Delivery, attempted: AttemptResult): void {
    if (attempted.attempt.reason === "internal") this.#parts.onFault?.(delivery);
    this.#parts.onAttempted?.(delivery, attempted);
  }

  /** It cannot be handled, for a reason of ours: the others of its partner are sent. */
  #failed(sending: Sending, error: unknown): void {
    const { delivery, slot } = sending;
    this.#parts.onTrouble("a notification could not be handled; it is tried again in 30 s", error);
    this.#scheduler.end(slot, false);
    this.#peers.circuits.probeEnded(delivery);
    this.#rest(delivery);
    this.#end(delivery);
  }

  /** The statement begins at once. */
  async #record({ delivery, leaseId }: Sending, { attempt, next }: AttemptResult, circuits: readonly CircuitChange[]) {
    const { clock, store, onTrouble } = this.#parts;
    const { queues } = this.#peers;
    const sentMs = clock.monotonicMs();
    const home = this.#homeOf(delivery);
    home.unrecorded += 1;
    let recorded: Recorded | undefined;
    try {
      recorded = await store.record({ ...keyOf(delivery), leaseId, attempt, next, circuits });
    } catch (error) {
      onTrouble("an outcome could not be stored; its notification is sent again", error);
    }
    home.unrecorded -= 1;
    if (recorded === undefined) {
      this.#withdraw(circuits);
      this.#rest(delivery);
    } else {
      const isDueAgain = next.kind === "retry" && recorded === "applied";
      queues.ended(delivery, recorded, isDueAgain ? leftMs(next.delayMs, sentMs, clock) : undefined);
    }
    this.#end(delivery);
    this.#resume(home);
  }

  #rest(delivery: Delivery): void {
    this.#peers.queues.rest(delivery, restMs);
    this.#parts.onFault?.(delivery);
  }

  /** Schedules the queues that waited until fewer outcomes of their home are unrecorded. */
  #resume(home: HomeShare): void {
    if (home.unrecorded > this.#unrecordedMax / this.#homes.length / 2) return;
    const queues = [...home.throttled];
    home.throttled.clear();
    for (const queue of queues) if (queue.head !== undefined) this.schedule(queue);
  }

  /** Another ownership loaded its circuits again. */
  #withdraw(changes: readonly CircuitChange[]): void {
    const { circuits, queues, ownership } = this.#peers;
    const current = changes.filter(({ partnerId, epoch }) => ownership.epochOf(partnerId) === epoch);
    circuits.withdraw(current);
    for (const { partnerId } of current) queues.reconsider(partnerId);
  }

  async #postpone(delivery: Delivery, delayMs: number): Promise<void> {
    const { clock, store, onTrouble } = this.#parts;
    const { queues } = this.#peers;
    const sentMs = clock.monotonicMs();
    try {
      await store.postpone([{ ...keyOf(delivery), delayMs }]);
      queues.release(delivery, leftMs(delayMs, sentMs, clock));
    } catch (error) {
      onTrouble("a delivery could not be postponed", error);
      queues.releaseUnchanged(delivery);
    }
    this.#end(delivery);
  }

  /** Ends this very attempt, and not that of a later ownership, which may be in flight again. */
  #end(delivery: Delivery): void {
    if (this.#sending.get(delivery.id)?.delivery === delivery) this.#sending.delete(delivery.id);
    this.#pump();
    if (this.#sending.size === 0) this.#onQuiet();
  }

  #homeOf({ partnerId }: Pick<Delivery, "partnerId">): HomeShare {
    // Every home has one.
    return this.#homes[homeOf(shardOf(partnerId), this.#homes.length)] as HomeShare;
  }

  get #unrecorded(): number {
    return this.#homes.reduce((sum, { unrecorded }) => sum + unrecorded, 0);
  }

  get #unrecordedMax(): number {
    return this.#parts.slotsMax * unrecordedPerSlot;
  }
}
