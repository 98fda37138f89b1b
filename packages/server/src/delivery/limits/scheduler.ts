import type { PartnerId } from "../../ids.ts";
import { RateLimits, type Token } from "./rate.ts";

/** A queue as the scheduler sees it. */
export interface Schedulable {
  readonly partnerId: PartnerId;
  /** The next delivery to send; undefined: none may be. */
  readonly head: { readonly bytes: number } | undefined;
}

export interface SchedulerOptions {
  /** Maximum number of POSTs in flight. */
  readonly slotsMax: number;
  /** Maximum size of content in flight. */
  readonly bytesMax: number;
  /** A monotonic clock. */
  readonly nowMs: () => number;
}

/** The limits of one partner. */
export interface PartnerLimits {
  readonly maxInFlight: number;
  readonly maxPerSecond: number | null;
  /** When its shard was claimed, by the monotonic clock: earlier POSTs may have used a second's tokens. */
  readonly ownedSinceMs: number;
}

/** A POST in flight: released by `end`. */
export interface Slot {
  readonly partnerId: PartnerId;
  readonly bytes: number;
  readonly token: Token | undefined;
  isEnded: boolean;
}

export interface Picked<Queue> {
  readonly queue: Queue;
  readonly slot: Slot;
}

interface Entry<Queue> {
  readonly partnerId: PartnerId;
  limits: PartnerLimits;
  /** Queues with something to send, the next one first. */
  readonly queues: Set<Queue>;
  inFlight: number;
  bytes: number;
  /** The bytes that it may still send in this turn. */
  deficit: number;
}

function headOf<Queue extends Schedulable>({ queues }: Entry<Queue>): Queue["head"] {
  const [queue] = queues;
  return queue?.head;
}

/** The bytes that a turn adds: about ten card IPNs. */
const quantumBytes = 16 * 1_024;

/**
 * Decides which delivery gets the next slot. It has no timers and performs no I/O. Deficit round robin by bytes over
 * partners, round robin over a partner's queues. A partner gets a slot while it holds fewer than its `maxInFlight`, and
 * fewer slots and bytes than are free: the dynamic threshold of a switch's buffer. So partners that hang leave as much
 * as each of them holds, and one alone gets half of everything.
 */
export class Scheduler<Queue extends Schedulable> {
  readonly #options: SchedulerOptions;
  readonly #rates: RateLimits;
  readonly #partners = new Map<PartnerId, Entry<Queue>>();
  /** Partners that may have a turn, in order. */
  readonly #ring = new Set<Entry<Queue>>();
  #taken = 0;
  #bytes = 0;

  constructor(options: SchedulerOptions) {
    this.#options = options;
    this.#rates = new RateLimits(options.nowMs);
  }

  /** POSTs in flight. */
  get slotsInUse(): number {
    return this.#taken;
  }

  /** Content in flight. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The queue has something to send. */
  add(queue: Queue, limits: PartnerLimits): void {
    const entry = this.#partners.get(queue.partnerId) ?? this.#newEntry(queue.partnerId, limits);
    entry.limits = limits;
    entry.queues.add(queue);
    if (entry.inFlight < limits.maxInFlight) this.#ring.add(entry);
    else this.#ring.delete(entry);
  }

  /** The queue may send nothing for now. One that has nothing left is removed in its turn. */
  remove(queue: Queue): void {
    const entry = this.#partners.get(queue.partnerId);
    if (entry === undefined) return;
    entry.queues.delete(queue);
    this.#settle(entry);
  }

  /** Their shards belong to another worker now. */
  forgetRates(isGone: (partnerId: PartnerId) => boolean): void {
    this.#rates.forget(isGone);
  }

  /** Returns a slot for the head of some queue; undefined if none may start. */
  next(): Picked<Queue> | undefined {
    return this.#pick() ?? (this.#skipTurns() ? this.#pick() : undefined);
  }

  /**
   * The time until a partner that only lacked a token gets one; undefined without such a partner. 0: it arrived after
   * `next` searched for it.
   */
  tokenInMs(): number | undefined {
    let soonestMs: number | undefined;
    for (const entry of this.#ring) {
      const { maxPerSecond, ownedSinceMs } = entry.limits;
      if (maxPerSecond === null || !this.#mayStart(entry)) continue;
      const waitMs = this.#rates.waitMs(entry.partnerId, maxPerSecond, ownedSinceMs);
      if (soonestMs === undefined || waitMs < soonestMs) soonestMs = waitMs;
    }
    return soonestMs;
  }

  /** Releases the slot, once. @param wasSent false: nothing was sent, and the token is returned */
  end(slot: Slot, wasSent: boolean): void {
    if (slot.isEnded) return;
    slot.isEnded = true;
    this.#taken -= 1;
    this.#bytes -= slot.bytes;
    if (slot.token !== undefined) this.#rates.end(slot.token, wasSent);
    const entry = this.#partners.get(slot.partnerId);
    if (entry === undefined) return;
    entry.inFlight -= 1;
    entry.bytes -= slot.bytes;
    if (entry.inFlight < entry.limits.maxInFlight) this.#ring.add(entry);
    this.#settle(entry);
  }

  #newEntry(partnerId: PartnerId, limits: PartnerLimits): Entry<Queue> {
    const entry: Entry<Queue> = { partnerId, limits, queues: new Set(), inFlight: 0, bytes: 0, deficit: 0 };
    this.#partners.set(partnerId, entry);
    return entry;
  }

  /** A content larger than half of the limit counts as half, so that it can be sent too. */
  #countedBytes(bytes: number): number {
    return Math.min(bytes, Math.floor(this.#options.bytesMax / 2));
  }

  #mayStart(entry: Entry<Queue>): boolean {
    const freeSlots = this.#options.slotsMax - this.#taken;
    const freeBytes = this.#options.bytesMax - this.#bytes;
    if (headOf(entry) === undefined) this.#settle(entry);
    const head = headOf(entry);
    if (head === undefined) return false;
    const bytes = this.#countedBytes(head.bytes);
    return entry.inFlight < freeSlots && entry.bytes + bytes <= freeBytes;
  }

  /** Undefined if it lacks a token. */
  #start(entry: Entry<Queue>): Picked<Queue> | undefined {
    const [queue] = entry.queues;
    const head = queue?.head;
    if (queue === undefined || head === undefined) return undefined;
    const { partnerId, limits } = entry;
    const { maxPerSecond, ownedSinceMs } = limits;
    const token = maxPerSecond === null ? undefined : this.#rates.acquire(partnerId, maxPerSecond, ownedSinceMs);
    if (maxPerSecond !== null && token === undefined) return undefined;
    const bytes = this.#countedBytes(head.bytes);
    entry.deficit -= bytes;
    entry.inFlight += 1;
    entry.bytes += bytes;
    this.#taken += 1;
    this.#bytes += bytes;
    // Move it behind the partner's other queues, and the partner behind the others when its turn is over.
    entry.queues.delete(queue);
    entry.queues.add(queue);
    if (entry.inFlight >= limits.maxInFlight) this.#ring.delete(entry);
    else if (entry.deficit <= 0) this.#rotate(entry);
    return { queue, slot: { partnerId, bytes, token, isEnded: false } };
  }

  /** Tries each partner once, in its turn. */
  #pick(): Picked<Queue> | undefined {
    for (let asked = this.#ring.size; asked > 0; asked -= 1) {
      const [entry] = this.#ring;
      if (entry === undefined) return undefined;
      if (!this.#mayStart(entry)) {
        this.#endTurn(entry);
        continue;
      }
      if (entry.deficit <= 0) entry.deficit += quantumBytes;
      const picked = entry.deficit > 0 ? this.#start(entry) : undefined;
      if (picked !== undefined) return picked;
      this.#rotate(entry);
    }
    return undefined;
  }

  /** All partners that may send are in debt: skip the turns that clear nobody's debt. @returns whether there are any */
  #skipTurns(): boolean {
    const indebted = [...this.#ring].filter(
      (entry) => entry.deficit <= 0 && this.#mayStart(entry) && this.#hasToken(entry),
    );
    const turns = Math.min(...indebted.map(({ deficit }) => Math.floor(-deficit / quantumBytes)));
    for (const entry of indebted) entry.deficit += turns * quantumBytes;
    return indebted.length > 0;
  }

  #hasToken({ partnerId, limits: { maxPerSecond, ownedSinceMs } }: Entry<Queue>): boolean {
    return maxPerSecond === null || this.#rates.waitMs(partnerId, maxPerSecond, ownedSinceMs) === 0;
  }

  /** The rest of a turn is lost, so that nobody saves up while it may not send. */
  #endTurn(entry: Entry<Queue>): void {
    entry.deficit = 0;
    if (this.#ring.has(entry)) this.#rotate(entry);
  }

  #rotate(entry: Entry<Queue>): void {
    this.#ring.delete(entry);
    this.#ring.add(entry);
  }

  #settle(entry: Entry<Queue>): void {
    for (const queue of entry.queues) if (queue.head === undefined) entry.queues.delete(queue);
    if (entry.queues.size > 0) return;
    this.#ring.delete(entry);
    entry.deficit = 0;
    if (entry.inFlight === 0) this.#partners.delete(entry.partnerId);
  }
}
