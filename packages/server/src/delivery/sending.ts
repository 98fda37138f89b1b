import type { Clock } from "../clock.ts";
import { homeOf, type LeaseId, type NotificationId, type PartnerId, shardOf } from "../ids.ts";
import type { LeaseHolder } from "../leases/lease.ts";
import { callbackUrlOf, isRegistered } from "../notification.ts";
import type { Partner } from "../partners/partner.ts";
import type { AttemptResult, MakeAttempt } from "./attempt.ts";
import type { CircuitChange, Circuits } from "./circuit.ts";
import type { Delivery } from "./delivery.ts";
import type { Queue } from "./queue.ts";
import type { Queues } from "./queues.ts";
import type { Scheduler, Slot } from "./scheduler.ts";
import { type DeliveryOutcome, type DeliveryStore, keyOf, leftMs } from "./store.ts";

/** One attempt that begins: its delivery counts as taken from its queue. */
export interface StartedAttempt {
  readonly delivery: Delivery;
  readonly partner: Partner;
  readonly slot: Slot;
  /** The epoch of the partner's shard. */
  readonly epoch: number;
  readonly leaseId: LeaseId;
  readonly isProbe: boolean;
  /** By the monotonic clock: the attempt has ended by then. */
  readonly deadlineMs: number;
}

interface Sending extends StartedAttempt {
  isOnWire: boolean;
}

/** The outcomes of one home, and the queues that wait for some of them to be recorded. */
interface HomeShare {
  unrecorded: number;
  readonly held: Set<Queue>;
}

export interface SendingsParts {
  readonly store: Pick<DeliveryStore, "record" | "postpone">;
  readonly queues: Queues;
  readonly scheduler: Scheduler<Queue>;
  readonly circuits: Circuits;
  readonly lease: LeaseHolder;
  readonly attempt: MakeAttempt;
  readonly clock: Clock;
  readonly slotsMax: number;
  readonly homes: number;
  /** The epoch of the partner's shard while attempts for it may start. */
  readonly epochOf: (partnerId: PartnerId) => number | undefined;
  /** A slot is free, or an outcome recorded: others may begin. */
  readonly onFreed: () => void;
  /** A queue that was held may begin again. */
  readonly onRoom: (queue: Queue) => void;
  readonly onAttempted?: (delivery: Delivery, attempted: AttemptResult) => void;
  readonly onFault?: (delivery: Delivery) => void;
  readonly onTrouble: (message: string, error: unknown) => void;
}

/**
 * Beyond this many unrecorded outcomes per slot nothing begins: a slow database stops the sending. Each home has an
 * even share of them.
 */
const unrecordedPerSlot = 4;
/** The time for recording the outcome of an attempt during which its shard is released. */
const recordingMs = 1_000;
/** The rest of a delivery that cannot be handled, or whose outcome could not be stored. */
const restMs = 30_000;

/**
 * The deliveries of a worker that have left their queues, one attempt for each notification.
 *
 * ```
 * queued ──(slot)──► on the wire ──(an answer, or none)──► being recorded ──► accepted, due again, or parked
 *                    on the wire ──(nothing was written)──► being put off ──► due again
 * on the wire, being recorded ──(an error of ours)──► rests for 30 s, with an event ──► due as before
 * ```
 *
 * A delivery is one reading of its row. If its shard is lost, the attempt continues: its outcome is recorded, ends
 * nothing that was read later, and changes no circuit; a stop waits for it.
 */
export class Sendings {
  readonly #parts: SendingsParts;
  readonly #sending = new Map<NotificationId, Sending>();
  readonly #homes: readonly HomeShare[];
  #unrecorded = 0;
  #isStopped = false;
  #onQuiet: () => void = () => undefined;

  constructor(parts: SendingsParts) {
    this.#parts = parts;
    this.#homes = Array.from({ length: parts.homes }, () => ({ unrecorded: 0, held: new Set() }));
  }

  /** Outcomes that are not durable yet. */
  get unrecorded(): number {
    return this.#unrecorded;
  }

  get mayBegin(): boolean {
    return this.#unrecorded < this.#unrecordedMax;
  }

  /** Holds a queue whose home has its share of unrecorded outcomes, until some are recorded. */
  holds(queue: Queue): boolean {
    const home = this.#homeOf(queue);
    if (home.unrecorded < this.#unrecordedMax / this.#homes.length) return false;
    home.held.add(queue);
    return true;
  }

  begin(begun: StartedAttempt): void {
    const sending = { ...begun, isOnWire: true };
    this.#send(sending).catch((error: unknown) => this.#failed(sending, error));
  }

  /** Whether a POST for a partner of the shard is in flight. */
  isOnWire(shard: number): boolean {
    for (const { delivery, isOnWire } of this.#sending.values()) {
      if (isOnWire && shardOf(delivery.partnerId) === shard) return true;
    }
    return false;
  }

  /** Attempts of these shards become due for the next owner when they have certainly ended. */
  async putOff(shards: ReadonlySet<number>): Promise<void> {
    const nowMs = this.#parts.clock.monotonicMs();
    const late = [...this.#sending.values()].flatMap(({ delivery, deadlineMs }) =>
      shards.has(shardOf(delivery.partnerId))
        ? [{ ...keyOf(delivery), delayMs: Math.max(0, deadlineMs - nowMs) + recordingMs }]
        : [],
    );
    if (late.length > 0) await this.#parts.store.postpone(late);
  }

  /** Resolves when nothing is on the wire or unrecorded. */
  quiet(): Promise<void> {
    return new Promise((done) => {
      this.#onQuiet = done;
      if (this.#sending.size === 0) done();
    });
  }

  /** Nothing of what ends from now on is recorded: the next owner sends it again. */
  stop(): void {
    this.#isStopped = true;
  }

  async #send(sending: Sending): Promise<void> {
    const { circuits, queues, scheduler, lease, epochOf, onFreed } = this.#parts;
    const { delivery, partner, slot, epoch, leaseId, isProbe } = sending;
    const { partnerId } = delivery;
    const url = callbackUrlOf(delivery, partner.settings);
    if (isProbe && url !== null) circuits.probeBegins(url, delivery);
    this.#sending.set(delivery.id, sending);
    const attempted = await this.#parts.attempt(delivery, partner, {
      outOfOrder: queues.isOutOfOrder(delivery),
      mayWrite: () => lease.current() === leaseId && epochOf(partnerId) !== undefined,
    });
    if (this.#isStopped) return;
    sending.isOnWire = false;
    circuits.probeEnded(delivery);
    if ("postponeMs" in attempted) {
      scheduler.end(slot, false);
      if (isProbe) queues.reconsider(partnerId);
      onFreed();
      return this.#postpone(delivery, attempted.postponeMs);
    }
    const { attempt, retryAfterMs = null } = attempted;
    // An attempt of an earlier ownership says nothing: the circuit belongs to another worker, or was loaded again.
    const isOwned = epochOf(partnerId) === epoch;
    const observed = { partnerId, attempt, retryAfterMs, isProbe, epoch };
    const changes = isOwned
      ? circuits.observe({ ...observed, isRegistered: isRegistered(partner.settings, attempt.url) })
      : [];
    scheduler.end(slot, true);
    this.#unrecorded += 1;
    this.#homeOf(delivery).unrecorded += 1;
    this.#report(delivery, attempted);
    // Nothing was read while it was probed.
    const isClosed = changes.some(({ circuit, event }) => event !== null && circuit.state === "closed");
    if (isProbe || isClosed) queues.reconsider(partnerId);
    onFreed();
    await this.#record(delivery, { ...keyOf(delivery), leaseId, attempt, next: attempted.next, circuits: changes });
  }

  /** An error in counting or showing attempts keeps no outcome from being recorded. */
  #report(delivery: Delivery, attempted: AttemptResult): void {
    try {
      if (attempted.attempt.reason === "internal") this.#parts.onFault?.(delivery);
      this.#parts.onAttempted?.(delivery, attempted);
    } catch (error) {
      this.#parts.onTrouble("an attempt could not be reported", error);
    }
  }

  /** It cannot be handled, for a reason of ours: the others of its partner are sent. */
  #failed(sending: Sending, error: unknown): void {
    const { delivery, slot } = sending;
    this.#parts.onTrouble("a notification could not be handled; it is tried again in 30 s", error);
    sending.isOnWire = false;
    this.#parts.scheduler.end(slot, false);
    this.#parts.circuits.probeEnded(delivery);
    this.#rest(delivery);
    this.#end(delivery);
  }

  async #record(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    const { clock, queues, store, onTrouble } = this.#parts;
    const sentMs = clock.monotonicMs();
    try {
      const recorded = await store.record(outcome);
      this.#recorded(delivery);
      const isDueAgain = outcome.next.kind === "retry" && recorded === "applied";
      queues.ended(delivery, recorded, isDueAgain ? leftMs(outcome.next.delayMs, sentMs, clock) : undefined);
    } catch (error) {
      this.#recorded(delivery);
      onTrouble("an outcome could not be stored; its notification is sent again", error);
      this.#withdraw(outcome.circuits);
      this.#rest(delivery);
    }
    this.#end(delivery);
  }

  #rest(delivery: Delivery): void {
    this.#parts.queues.rest(delivery, restMs);
    this.#parts.onFault?.(delivery);
  }

  #recorded(delivery: Delivery): void {
    const home = this.#homeOf(delivery);
    this.#unrecorded -= 1;
    home.unrecorded -= 1;
    if (home.held.size === 0 || home.unrecorded > this.#unrecordedMax / this.#homes.length / 2) return;
    const held = [...home.held];
    home.held.clear();
    for (const queue of held) this.#parts.onRoom(queue);
  }

  /** Another ownership loaded its circuits again. */
  #withdraw(changes: readonly CircuitChange[]): void {
    const { circuits, queues, epochOf } = this.#parts;
    const current = changes.filter(({ partnerId, epoch }) => epochOf(partnerId) === epoch);
    circuits.withdraw(current);
    for (const { partnerId } of current) queues.reconsider(partnerId);
  }

  async #postpone(delivery: Delivery, delayMs: number): Promise<void> {
    const { clock, queues, store, onTrouble } = this.#parts;
    const sentMs = clock.monotonicMs();
    try {
      await store.postpone([{ ...keyOf(delivery), delayMs }]);
      queues.release(delivery, leftMs(delayMs, sentMs, clock));
    } catch (error) {
      onTrouble("a delivery could not be put off", error);
      queues.releaseUnchanged(delivery);
    }
    this.#end(delivery);
  }

  /** Ends this very attempt, and not that of a later ownership, which may be in flight again. */
  #end(delivery: Delivery): void {
    if (this.#sending.get(delivery.id)?.delivery === delivery) this.#sending.delete(delivery.id);
    this.#parts.onFreed();
    if (this.#sending.size === 0) this.#onQuiet();
  }

  #homeOf({ partnerId }: Pick<Delivery, "partnerId">): HomeShare {
    // Every home has one.
    return this.#homes[homeOf(shardOf(partnerId), this.#homes.length)] as HomeShare;
  }

  get #unrecordedMax(): number {
    return this.#parts.slotsMax * unrecordedPerSlot;
  }
}
