import type { PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { RateLimits, type Token } from "./rate.ts";
import { type Place, Slots } from "./slots.ts";
import type { Claimed } from "./store.ts";
import { type Seat, type Waiting, WaitingRoom } from "./waiting-room.ts";

/**
 * Why there is no seat: attempts that hang hold half of all places, and this partner's are among them; the bytes in
 * flight; all seats; those of the partner, by its `maxInFlight`; its `maxPerSecond`.
 */
export type SeatLimit = "hanging" | "bytes" | "seats" | "max_in_flight" | "max_per_second";

export interface AdmissionParts {
  readonly directory: Pick<PartnerDirectory, "peek">;
  readonly slotsMax: number;
  readonly bytesInFlightMax: number;
  /** A monotonic clock. */
  readonly nowMs: () => number;
  readonly onNoSeat?: (limit: SeatLimit) => void;
}

/**
 * Seats for each place: what is written while as much is on its way. What completes faster than it leaves fills them.
 * Measured, where the thread that sends is full: with 2, six of seven rows found none and were claimed, which costs
 * PostgreSQL half of the row again; with 8, one of four, and a quarter more left in a second.
 */
export const seatsPerPlace = 8;
/** For a partner whose settings are not at hand. */
export const partnerMaxUnknown = 32;

/** How much a claim may bring. */
export interface Allowance {
  /** Of all partners together. */
  readonly rowsMax: number;
  /** Partners that may have none. */
  readonly without: ReadonlySet<PartnerId>;
  /** Partners that may have fewer than their share. */
  readonly rowsMaxOf: ReadonlyMap<PartnerId, number>;
}

/**
 * What may leave now: places for POSTs, seats for what is being written, bytes, and each partner's `maxInFlight` and
 * `maxPerSecond`.
 */
export class Admission {
  readonly #parts: AdmissionParts;
  readonly slots: Slots;
  readonly waitingRoom: WaitingRoom;
  readonly rates: RateLimits;
  /** Places given back since the last claim, by partner: so many more will be, until what it brings is here. */
  #left = new Map<PartnerId, number>();
  #leftSum = 0;
  /** Of what is limited. A place or a seat without one took none, and gives none back. */
  readonly #tokens = new Map<Seat | Place, Token>();

  constructor(parts: AdmissionParts) {
    this.#parts = parts;
    this.slots = new Slots({ slotsMax: parts.slotsMax, bytesMax: parts.bytesInFlightMax }, parts.nowMs);
    this.waitingRoom = new WaitingRoom(parts.slotsMax * seatsPerPlace, parts.nowMs);
    this.rates = new RateLimits(parts.nowMs);
  }

  /** Content of what is in flight, and of what is about to be. */
  get bytes(): number {
    return this.slots.bytes + this.waitingRoom.bytes;
  }

  get bytesFree(): number {
    return Math.max(0, this.#parts.bytesInFlightMax - this.bytes);
  }

  /** A seat and a token for what is about to be written. */
  seat({ id, settings }: Partner, bytes: number): Seat | undefined {
    if (this.slots.holdsUp(id)) return this.#noSeat("hanging");
    if (this.bytes > 0 && bytes > this.bytesFree) return this.#noSeat("bytes");
    const seat = this.waitingRoom.take(id, bytes, settings.maxInFlight * seatsPerPlace);
    if (seat === undefined) return this.#noSeat(this.waitingRoom.isFull ? "seats" : "max_in_flight");
    if (settings.maxPerSecond === null) return seat;
    const token = this.rates.take(id, settings.maxPerSecond);
    if (token !== undefined) {
      this.#tokens.set(seat, token);
      return seat;
    }
    this.waitingRoom.give(seat);
    return this.#noSeat("max_per_second");
  }

  /** It was not written after all. */
  unseat(seat: Seat): void {
    this.unsent(seat);
    this.waitingRoom.give(seat);
  }

  /** From its seat to a place; undefined: it waits there. */
  stand(seat: Seat, claimed: Claimed, instance: Instance): Place | undefined {
    const place = this.slots.take(seat.partnerId, seat.bytes, this.#maxInFlight(seat.partnerId));
    if (place !== undefined) {
      const token = this.#tokens.get(seat);
      this.#tokens.delete(seat);
      if (token !== undefined) this.#tokens.set(place, token);
      this.waitingRoom.give(seat);
      return place;
    }
    // A second's tokens are for that second's POSTs.
    this.unsent(seat);
    this.waitingRoom.wait(claimed, instance, seat);
    return undefined;
  }

  /** Whose turn it is now that a place of the partner is free; its seat is given up. */
  next(partnerId: PartnerId): Waiting | undefined {
    const hasPlace = (id: PartnerId) => this.slots.room(id, this.#maxInFlight(id)) > 0;
    // While other places were free, nobody but this partner waited for this one.
    if (this.slots.free > 1) return hasPlace(partnerId) ? this.waitingRoom.nextOf(partnerId) : undefined;
    return this.waitingRoom.next(hasPlace);
  }

  /** A place and a token. */
  place(partnerId: PartnerId, bytes: number): Place | undefined {
    const perSecond = this.#maxPerSecond(partnerId);
    if (this.rates.available(partnerId, perSecond) === 0) return undefined;
    const place = this.slots.take(partnerId, bytes, this.#maxInFlight(partnerId));
    const token = place && perSecond !== null ? this.rates.take(partnerId, perSecond) : undefined;
    if (place !== undefined && token !== undefined) this.#tokens.set(place, token);
    return place;
  }

  /** Whether it has its token, or gets it now: when it took its place, the settings may have been unknown. */
  mayLeave(place: Place, perSecond: number | null): boolean {
    if (perSecond === null || this.#tokens.has(place)) return true;
    const token = this.rates.take(place.partnerId, perSecond);
    if (token !== undefined) this.#tokens.set(place, token);
    return token !== undefined;
  }

  /** Nothing was sent: its token may be used for another. The place, or the seat, is still to be given up. */
  unsent(place: Place | Seat): void {
    const token = this.#tokens.get(place);
    this.#tokens.delete(place);
    if (token !== undefined) this.rates.giveBack(token);
  }

  /** The answer is there, or nothing was sent. */
  leave(place: Place): void {
    const token = this.#tokens.get(place);
    this.#tokens.delete(place);
    if (token !== undefined) this.rates.spend(token);
    this.slots.give(place);
    this.#left.set(place.partnerId, (this.#left.get(place.partnerId) ?? 0) + 1);
    this.#leftSum += 1;
  }

  /** From a claim: a seat, where there was no place for it yet. False when there is none. */
  waitFor(claimed: Claimed, instance: Instance): boolean {
    const { partnerId, content } = claimed;
    const bytes = content.length;
    if (this.slots.holdsUp(partnerId) || bytes > this.bytesFree || this.#maxPerSecond(partnerId) !== null) return false;
    const seat = this.waitingRoom.take(partnerId, bytes, this.#maxInFlight(partnerId) * seatsPerPlace);
    if (seat !== undefined) this.waitingRoom.wait(claimed, instance, seat);
    return seat !== undefined;
  }

  /** How many rows a claim may bring: for the places that are free, and for those that will be by then. */
  get claimable(): number {
    return this.slots.free + Math.max(0, this.#leftSum - this.waitingRoom.waiting);
  }

  /**
   * What a claim may bring now, which begins at once: for the partners that hold places or are limited; the others may
   * have their share. Of each as many more than it has room for as it gave places back since the last claim, and its
   * `maxInFlight` at most, so that it goes on at its pace while the next claim is under way.
   */
  allowance(): Allowance {
    const rowsMax = this.claimable;
    const left = this.#left;
    this.#left = new Map();
    this.#leftSum = 0;
    const without = new Set<PartnerId>();
    const rowsMaxOf = new Map<PartnerId, number>();
    for (const partnerId of new Set([...this.slots.holders(), ...this.rates.limited()])) {
      const perSecond = this.#maxPerSecond(partnerId);
      const isSteady = perSecond === null && !this.slots.holdsUp(partnerId);
      const maxInFlight = this.#maxInFlight(partnerId);
      const pace = isSteady ? Math.min(left.get(partnerId) ?? 0, maxInFlight) : 0;
      const ahead = Math.max(0, pace - this.waitingRoom.waitingOf(partnerId));
      const room = Math.min(
        this.slots.room(partnerId, maxInFlight) + ahead,
        this.rates.available(partnerId, perSecond),
      );
      if (room === 0) without.add(partnerId);
      else if (room < partnerMaxUnknown) rowsMaxOf.set(partnerId, room);
    }
    return { rowsMax, without, rowsMaxOf };
  }

  /** Whether it has no token left. */
  isLimited(partnerId: PartnerId): boolean {
    return this.rates.available(partnerId, this.#maxPerSecond(partnerId)) === 0;
  }

  /** Until it has a token; 0 when it has one. */
  tokenInMs(partnerId: PartnerId): number {
    return this.rates.waitMs(partnerId, this.#maxPerSecond(partnerId));
  }

  #noSeat(limit: SeatLimit): undefined {
    this.#parts.onNoSeat?.(limit);
  }

  #maxInFlight(partnerId: PartnerId): number {
    return this.#parts.directory.peek(partnerId)?.settings.maxInFlight ?? partnerMaxUnknown;
  }

  #maxPerSecond(partnerId: PartnerId): number | null {
    return this.#parts.directory.peek(partnerId)?.settings.maxPerSecond ?? null;
  }
}
