import type { ReversalMessage } from "../acquirer.ts";
import { type Booking, isDropped, sideOf } from "./booking.ts";
import { BoundedMap } from "./bounded-map.ts";

/**
 * Messages that moved money, or should have: every message once, and every Reversal that arrived before its message.
 */
export class Books {
  readonly #bookings: BoundedMap<string, Booking>;
  /** Apart, because they wait for weeks while batches come and go. */
  readonly #preAuths: BoundedMap<string, Booking>;
  readonly #revoked: BoundedMap<string, ReversalMessage["original"]>;

  constructor(bookingsMax: number) {
    this.#bookings = new BoundedMap(bookingsMax, ({ transactionId }) => transactionId);
    this.#preAuths = new BoundedMap(bookingsMax, ({ transactionId }) => transactionId);
    this.#revoked = new BoundedMap(bookingsMax, ({ transactionId }) => transactionId);
  }

  enter(booking: Booking): Booking {
    (booking.command === "PREAUTH" ? this.#preAuths : this.#bookings).enter(booking);
    if (!booking.approved) return booking;
    if (booking.command === "REFUND") refund(booking, booking.amountMinor);
    else if (booking.original !== undefined) booking.original.followedBy = booking;
    booking.batch?.count(sideOf(booking), booking, 1);
    return booking;
  }

  /** As it came, whatever became of it. */
  seen(transactionId: string): Booking | undefined {
    return this.#bookings.get(transactionId) ?? this.#preAuths.get(transactionId);
  }

  /** As the bank knows it now, corrected by a Batch Upload. */
  find(transactionId: string): Booking | undefined {
    const booking = this.seen(transactionId);
    return booking === undefined || isDropped(booking) ? undefined : booking;
  }

  all(): Booking[] {
    return [...this.#preAuths.values(), ...this.#bookings.values()].filter((booking) => !isDropped(booking));
  }

  /** As if it had never arrived: its original counts again, and a Void of it no longer does. */
  undo(booking: Booking): void {
    booking.reversed = true;
    booking.batch?.count(sideOf(booking), booking, -1);
    if (booking.command === "REFUND") refund(booking, -booking.amountMinor);
    else if (booking.original !== undefined) booking.original.followedBy = undefined;
    if (booking.followedBy === undefined) return;
    booking.followedBy.reversed = true;
    booking.batch?.count("void", booking.followedBy, -1);
  }

  /** Whatever comes later under this id is refused. */
  revoke(original: ReversalMessage["original"]): void {
    if (!this.isRevoked(original.transactionId)) this.#revoked.enter(original);
  }

  isRevoked(transactionId: string): boolean {
    return this.#revoked.get(transactionId) !== undefined;
  }
}

function refund({ original }: Booking, amountMinor: bigint): void {
  if (original !== undefined) original.refundedMinor += amountMinor;
}
