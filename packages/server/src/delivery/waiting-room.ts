import type { PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import { fairRoom } from "./fair-room.ts";
import type { Claimed } from "./store.ts";

/** A seat for one delivery: given up exactly once, when its POST begins or when it is due for everybody. */
export interface Seat {
  readonly partnerId: PartnerId;
  readonly bytes: number;
}

/** A delivery on its seat: written, leased to this instance, and without a place yet. */
export interface Waiting {
  readonly claimed: Claimed;
  readonly instance: Instance;
  readonly seat: Seat;
  readonly sinceMs: number;
}

/**
 * Where deliveries that this instance wrote wait for their place, from before their commit until their POST begins.
 * Measured: without it, a place was held through the commit, every third row found none, and took the way through a
 * claim, which costs PostgreSQL as much again as the row itself.
 *
 * Seats are bounded, all together and for each partner, and nobody waits here for long: see `overdue`.
 */
export class WaitingRoom {
  readonly #seatsMax: number;
  readonly #nowMs: () => number;
  readonly #seats = new Set<Seat>();
  readonly #seatsOf = new Map<PartnerId, number>();
  /** By partner, in the order in which they came; partners in the order in which they were served last. */
  readonly #queues = new Map<PartnerId, Waiting[]>();
  #bytes = 0;
  #waiting = 0;

  /** @param nowMs a monotonic clock */
  constructor(seatsMax: number, nowMs: () => number) {
    this.#seatsMax = seatsMax;
    this.#nowMs = nowMs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get isFull(): boolean {
    return this.#seats.size >= this.#seatsMax;
  }

  /** Seats taken. */
  get taken(): number {
    return this.#seats.size;
  }

  /** Deliveries that could leave if there was a place. */
  get waiting(): number {
    return this.#waiting;
  }

  waitingOf(partnerId: PartnerId): number {
    return this.#queues.get(partnerId)?.length ?? 0;
  }

  /** How many seats the partner has. */
  ofPartner(partnerId: PartnerId): number {
    return this.#seatsOf.get(partnerId) ?? 0;
  }

  /** @param isLively as `Slots` has it: seats of those that hang are shared out like their places */
  take(partnerId: PartnerId, bytes: number, partnerMax: number, isLively: boolean): Seat | undefined {
    const ofPartner = this.ofPartner(partnerId);
    if (ofPartner >= partnerMax || fairRoom(this.#seatsMax, this.taken, ofPartner, isLively) === 0) return undefined;
    const seat = { partnerId, bytes };
    this.#seats.add(seat);
    this.#seatsOf.set(partnerId, ofPartner + 1);
    this.#bytes += bytes;
    return seat;
  }

  give(seat: Seat): void {
    const { partnerId, bytes } = seat;
    if (!this.#seats.delete(seat)) throw new Error(`A seat of partner ${partnerId} was given up twice.`);
    const left = (this.#seatsOf.get(partnerId) ?? 0) - 1;
    if (left > 0) this.#seatsOf.set(partnerId, left);
    else this.#seatsOf.delete(partnerId);
    this.#bytes -= bytes;
  }

  /** It was written, or claimed, and there is no place yet. */
  wait(claimed: Claimed, instance: Instance, seat: Seat): void {
    const waiting = { claimed, instance, seat, sinceMs: this.#nowMs() };
    const queue = this.#queues.get(claimed.partnerId);
    this.#waiting += 1;
    if (queue === undefined) this.#queues.set(claimed.partnerId, [waiting]);
    else queue.push(waiting);
  }

  /** The first of the partner that was served longest ago, among those that have a place; its seat is given up. */
  next(hasPlace: (partnerId: PartnerId) => boolean): Waiting | undefined {
    for (const partnerId of this.#queues.keys()) if (hasPlace(partnerId)) return this.nextOf(partnerId);
    return undefined;
  }

  /** The first of one partner; its seat is given up. */
  nextOf(partnerId: PartnerId): Waiting | undefined {
    const queue = this.#queues.get(partnerId);
    const first = queue?.shift();
    if (queue === undefined || first === undefined) return undefined;
    this.#waiting -= 1;
    this.#queues.delete(partnerId);
    if (queue.length > 0) this.#queues.set(partnerId, queue);
    this.give(first.seat);
    return first;
  }

  /** Takes out all that have waited for longer than `maxMs`: their seats are given up. */
  overdue(maxMs: number): readonly Waiting[] {
    const sinceMs = this.#nowMs() - maxMs;
    const overdue: Waiting[] = [];
    for (const [partnerId, queue] of this.#queues) {
      const young = queue.findIndex((waiting) => waiting.sinceMs > sinceMs);
      overdue.push(...queue.splice(0, young === -1 ? queue.length : young));
      if (queue.length === 0) this.#queues.delete(partnerId);
    }
    this.#waiting -= overdue.length;
    for (const { seat } of overdue) this.give(seat);
    return overdue;
  }
}
