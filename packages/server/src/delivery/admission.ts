import type { PartnerId } from "../ids.ts";
import type { Instance } from "../instance.ts";
import type { Partner, PartnerDirectory } from "../partners/partner.ts";
import { RateLimits, type Token } from "./rate.ts";
import { type Place, Slots } from "./slots.ts";
import type { Claimed } from "./store.ts";
import { type Seat, type Waiting, WaitingRoom } from "./waiting-room.ts";

/**
 * Why there is no seat: half of all places or seats are taken, and this partner, which has more than a few of them,
 * does not answer; the bytes in flight; all seats that it may have; those of the partner, by its `maxInFlight`; its
 * `maxPerSecond`.
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
  /** The share of each. */
  readonly rowsPerPartnerMax: number;
  /** Partners that may have none. */
  readonly without: ReadonlySet<PartnerId>;
  /** Partners that may have another share. */
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
  /** As long as fewer places are taken, somebody beside the partner that gave one may have room for what waits. */
  #othersBelow = 0;
  /** Of what is limited. A place or a seat without one took none, and gives none back. */
  readonly #tokens = new Map<Seat | Place, Token>();

  readonly #hasRoom = (id: PartnerId) => this.slots.room(id, this.#maxInFlight(id)) > 0;

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
    const seatsMax = settings.maxInFlight * seatsPerPlace;
    const isLively = this.slots.isLively(id);
    const seat = this.waitingRoom.take(id, bytes, seatsMax, isLively);
    if (seat === undefined) {
      if (this.waitingRoom.isFull) return this.#noSeat("seats");
      if (this.waitingRoom.ofPartner(id) >= seatsMax) return this.#noSeat("max_in_flight");
      return this.#noSeat(isLively ? "seats" : "hanging");
    }
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

  /**
   * Whose turn it is now that a place of the partner is free; its seat is given up. To be asked until it has no more,
   * so that nobody waits who has room.
   *
   * @param lacking partners that have room, and lack something else: it is not theirs
   */
  next(partnerId: PartnerId, lacking: readonly PartnerId[] = []): Waiting | undefined {
    // Asked at every place that is given back: where nobody lacks anything, nothing is made for it.
    const hasRoom =
      lacking.length === 0 ? this.#hasRoom : (id: PartnerId) => !lacking.includes(id) && this.#hasRoom(id);
    if (this.slots.taken >= this.#othersBelow) {
      return hasRoom(partnerId) ? this.waitingRoom.nextOf(partnerId) : undefined;
    }
    const waiting = this.waitingRoom.next(hasRoom);
    // Those that lack something may have it when the next place is given back.
    if (waiting === undefined && lacking.length === 0) this.#othersBelow = 0;
    return waiting;
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

  /** @param ended whether an attempt was made, and ended before its deadline */
  leave(place: Place, ended = false): void {
    const token = this.#tokens.get(place);
    this.#tokens.delete(place);
    if (token !== undefined) this.rates.spend(token);
    this.#othersBelow = Math.max(this.#othersBelow, this.slots.give(place, ended));
    this.#left.set(place.partnerId, (this.#left.get(place.partnerId) ?? 0) + 1);
    this.#leftSum += 1;
  }

  /** From a claim: a seat, where there was no place for it yet. False when there is none. */
  waitFor(claimed: Claimed, instance: Instance): boolean {
    const { partnerId, content } = claimed;
    const bytes = content.length;
    if (this.slots.holdsUp(partnerId) || bytes > this.bytesFree || this.#maxPerSecond(partnerId) !== null) return false;
    const isLively = this.slots.isLively(partnerId);
    const seat = this.waitingRoom.take(partnerId, bytes, this.#maxInFlight(partnerId) * seatsPerPlace, isLively);
    if (seat !== undefined) this.waitingRoom.wait(claimed, instance, seat);
    return seat !== undefined;
  }

  /** How many rows a claim may bring: for the places that are free, and for those that will be by then. */
  get claimable(): number {
    return this.slots.free + Math.max(0, this.#leftSum - this.waitingRoom.waiting);
  }

  /**
   * What a claim may bring now, which begins at once: for the partners that hold places or are limited; the others may
   * have their share.
   */
  allowance(): Allowance {
    const rowsMax = this.claimable;
    const rowsPerPartnerMax = Math.min(partnerMaxUnknown, this.slots.roomForNew);
    const without = new Set<PartnerId>();
    const rowsMaxOf = new Map<PartnerId, number>();
    for (const partnerId of new Set([...this.slots.holders(), ...this.rates.limited()])) {
      const rows = Math.min(partnerMaxUnknown, this.claimableOf(partnerId));
      if (rows === 0) without.add(partnerId);
      else if (rows !== rowsPerPartnerMax) rowsMaxOf.set(partnerId, rows);
    }
    this.#left = new Map();
    this.#leftSum = 0;
    return { rowsMax, rowsPerPartnerMax, without, rowsMaxOf };
  }

  /**
   * How many rows of one partner a claim may bring: as many more than it has room for as it gave places back since the
   * last claim, and its `maxInFlight` at most, so that it goes on at its pace while the next claim is under way. While
   * as many wait as places were given back, of all partners together, what waits is enough.
   */
  claimableOf(partnerId: PartnerId): number {
    const perSecond = this.#maxPerSecond(partnerId);
    const maxInFlight = this.#maxInFlight(partnerId);
    const isSteady = perSecond === null && this.#leftSum > this.waitingRoom.waiting && this.slots.keepsPace(partnerId);
    const pace = isSteady ? Math.min(this.#left.get(partnerId) ?? 0, maxInFlight) : 0;
    const ahead = Math.max(0, pace - this.waitingRoom.waitingOf(partnerId));
    return Math.min(this.slots.room(partnerId, maxInFlight) + ahead, this.rates.available(partnerId, perSecond));
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
