import type { AuthorisationMessage } from "../acquirer.ts";

/** One authorisation as the acquirer holds it, whatever became of its answer. The card is not kept. */
export interface Booking extends Omit<AuthorisationMessage, "cardToken"> {
  readonly responseCode: string;
  readonly approved: boolean;
}

/** The acquirer's own books: what it believes, to be held against what the ledger believes. */
export class Books {
  readonly #byTransaction = new Map<string, Booking>();
  /** A traceNo comes round again after 999,999 messages: the latest booking under it is the one meant. */
  readonly #byTrace = new Map<string, Booking>();
  readonly #bookingsMax: number;
  /** By age. To find the oldest in a Map grows slower with every one that was deleted before it. */
  readonly #ring: Booking[] = [];
  /** Where the next one goes: on the oldest, once the ring is full. */
  #next = 0;

  /** Beyond `bookingsMax` the oldest are forgotten: the simulator runs under load for hours. */
  constructor(bookingsMax: number) {
    this.#bookingsMax = bookingsMax;
  }

  enter(booking: Booking): void {
    this.#byTransaction.set(booking.transactionId, booking);
    this.#byTrace.set(traceKey(booking.tid, booking.traceNo), booking);
    const forgotten = this.#ring[this.#next];
    if (forgotten !== undefined) this.#forget(forgotten);
    this.#ring[this.#next] = booking;
    this.#next = (this.#next + 1) % this.#bookingsMax;
  }

  find(transactionId: string): Booking | undefined {
    return this.#byTransaction.get(transactionId);
  }

  /** As a Reversal finds its original: by terminal and trace number. */
  findByTrace(tid: string, traceNo: string): Booking | undefined {
    return this.#byTrace.get(traceKey(tid, traceNo));
  }

  /** In the order they were entered. */
  all(): Booking[] {
    return [...this.#byTransaction.values()];
  }

  #forget(booking: Booking): void {
    this.#byTransaction.delete(booking.transactionId);
    const key = traceKey(booking.tid, booking.traceNo);
    if (this.#byTrace.get(key) === booking) this.#byTrace.delete(key);
  }
}

/** Unambiguous, because a traceNo has six digits always. */
function traceKey(tid: string, traceNo: string): string {
  return `${tid}/${traceNo}`;
}
