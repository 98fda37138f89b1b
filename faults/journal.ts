import type { ReceivedIpn } from "@paybell/partner";
import { amountOf, numberOf } from "./command-id.ts";
import { hash32 } from "./random.ts";

const isAccepted = 1;
const isRefused = 2;
const isDelivered = 4;

/** A delivery to a partner that nobody requested, or with other content. */
export interface Ghost {
  readonly no: number | undefined;
  readonly why: string;
}

export interface Delivered {
  readonly no: number;
  /** Numbers whose IPNs had to come before it; of a Void or PreAuth-Complete, its original. */
  readonly before: readonly number[];
}

export interface OrderViolation {
  readonly no: number;
  /** The earlier one that had not arrived. */
  readonly before: number;
}

const notedMax = 50;

/**
 * Requests to the service, its answers, and the deliveries that partners accepted, by command. Some twenty bytes each,
 * so that the memory of a long run is bounded by the length of a series.
 */
export class Journal {
  #size = 0;
  #capacity = 0;
  #state = new Uint8Array(0);
  #repeats = new Uint8Array(0);
  #partner = new Uint8Array(0);
  /** Hashes of the ids of transactions and of notifications: they reveal a second one without storing either. */
  #transaction = new Uint32Array(0);
  #notification = new Uint32Array(0);
  readonly #before = new Map<number, readonly number[]>();
  /** By partner: taken by the service and not delivered yet. */
  readonly #owedTo: number[] = [];
  readonly ghosts: Ghost[] = [];
  readonly orderViolations: OrderViolation[] = [];
  #ghostCount = 0;
  #orderViolationCount = 0;
  #accepted = 0;
  #refused = 0;
  #delivered = 0;
  #duplicates = 0;
  #outOfOrder = 0;
  readonly #declined = new Map<number, string>();

  /** Commands so far: the next one's number. */
  get size(): number {
    return this.#size;
  }

  get accepted(): number {
    return this.#accepted;
  }

  get refused(): number {
    return this.#refused;
  }

  get delivered(): number {
    return this.#delivered;
  }

  get duplicates(): number {
    return this.#duplicates;
  }

  get ghostCount(): number {
    return this.#ghostCount;
  }

  get orderViolationCount(): number {
    return this.#orderViolationCount;
  }

  /** IPNs that came before an earlier one and said so, by their header. */
  get outOfOrder(): number {
    return this.#outOfOrder;
  }

  /**
   * A command that is about to be sent.
   *
   * @param before those whose IPNs must have been accepted before its own is sent
   * @returns its number
   */
  begin(partner: number, before: readonly number[] = []): number {
    const no = this.#size;
    if (no === this.#capacity) this.#grow();
    this.#size += 1;
    this.#partner[no] = partner;
    if (before.length > 0) this.#before.set(no, before);
    return no;
  }

  /** The service accepted it: from now on its IPN is owed. */
  accept(no: number, transactionId: string): void {
    if (this.#has(no, isAccepted)) return;
    this.#mark(no, isAccepted);
    this.#accepted += 1;
    if (!this.#has(no, isDelivered)) this.#owes(no, 1);
    this.#sameAs(this.#transaction, no, transactionId, "it was answered with another transaction");
  }

  /** The service itself ended it with an error of that code, although the acquirer approves it. */
  decline(no: number, code: string): void {
    this.#declined.set(no, code);
  }

  /** The service refused it for good: no IPN may come. */
  refuse(no: number): void {
    if (this.#has(no, isRefused)) return;
    this.#mark(no, isRefused);
    this.#refused += 1;
    if (this.#has(no, isDelivered)) this.#ghost(no, "it was refused");
  }

  /**
   * An IPN that a partner verified and answers with 2xx now.
   *
   * @returns what is known of it, when it is the first of its command
   */
  deliver(partner: number, received: ReceivedIpn): Delivered | undefined {
    const { ipn, notificationId = "", outOfOrder } = received;
    const no = numberOf(ipn.merchantTransId);
    if (no === undefined || no >= this.#size || this.#partner[no] !== partner) {
      this.#ghost(undefined, `partner ${partner} was sent ${ipn.merchantTransId}, which it never asked for`);
      return undefined;
    }
    this.#sameAs(this.#transaction, no, ipn.id, "its IPN is of another transaction");
    this.#sameAs(this.#notification, no, notificationId, "it has a second notification");
    if (this.#has(no, isRefused)) this.#ghost(no, "it was refused");
    if (received.kind === "card" && received.headers.command === "SALE" && Number(received.ipn.amount) !== amountOf(no))
      this.#ghost(no, `its amount is ${received.ipn.amount} in place of ${amountOf(no)}`);
    if (this.#has(no, isDelivered)) {
      this.#duplicates += 1;
      this.#repeats[no] = Math.min(255, (this.#repeats[no] ?? 0) + 1);
      return undefined;
    }
    if (this.#has(no, isAccepted)) this.#owes(no, -1);
    this.#mark(no, isDelivered);
    this.#delivered += 1;
    if (outOfOrder) this.#outOfOrder += 1;
    else this.#judgeOrder(no);
    const before = this.#before.get(no) ?? [];
    this.#before.delete(no);
    return { no, before };
  }

  isDelivered(no: number): boolean {
    return this.#has(no, isDelivered);
  }

  /** The number of one partner's commands accepted by the service and not delivered yet. */
  owedTo(partner: number): number {
    return this.#owedTo[partner] ?? 0;
  }

  /** The number of those from `from` to less than `to` that are owed. */
  owed(from: number, to: number): number {
    let count = 0;
    for (let no = from; no < Math.min(to, this.#size); no += 1) if (this.#isOwed(no)) count += 1;
    return count;
  }

  /** The number of repeated arrivals of those from `from` to less than `to`. */
  repeats(from: number, to: number): number {
    let sum = 0;
    for (let no = from; no < Math.min(to, this.#size); no += 1) sum += this.#repeats[no] ?? 0;
    return sum;
  }

  /** Commands from `from` to less than `to` that the service itself declined, with their codes. */
  declined(from: number, to: number): readonly (readonly [no: number, code: string])[] {
    return [...this.#declined].filter(([no]) => no >= from && no < to);
  }

  /** Commands that were accepted but never delivered; the first of them. */
  lost(max = notedMax): readonly number[] {
    return this.#where((no) => this.#isOwed(no), max);
  }

  /** Commands that were delivered although the service never accepted them. */
  neverAccepted(max = notedMax): readonly number[] {
    return this.#where((no) => this.#has(no, isDelivered) && !this.#has(no, isAccepted), max);
  }

  partnerOf(no: number): number {
    return this.#partner[no] ?? 0;
  }

  #isOwed(no: number): boolean {
    return ((this.#state[no] ?? 0) & (isAccepted | isDelivered)) === isAccepted;
  }

  #owes(no: number, change: number): void {
    const partner = this.partnerOf(no);
    this.#owedTo[partner] = this.owedTo(partner) + change;
  }

  #judgeOrder(no: number): void {
    const missing = this.#before.get(no)?.find((earlier) => !this.#has(earlier, isDelivered));
    if (missing === undefined) return;
    this.#orderViolationCount += 1;
    if (this.orderViolations.length < notedMax) this.orderViolations.push({ no, before: missing });
  }

  #sameAs(column: Uint32Array, no: number, id: string, why: string): void {
    // Zero: never seen.
    const hash = Math.max(1, hash32(id));
    if (column[no] === 0) column[no] = hash;
    else if (column[no] !== hash) this.#ghost(no, why);
  }

  #ghost(no: number | undefined, why: string): void {
    this.#ghostCount += 1;
    if (this.ghosts.length < notedMax) this.ghosts.push({ no, why });
  }

  #has(no: number, bit: number): boolean {
    return ((this.#state[no] ?? 0) & bit) !== 0;
  }

  #mark(no: number, bit: number): void {
    this.#state[no] = (this.#state[no] ?? 0) | bit;
  }

  #where(holds: (no: number) => boolean, max: number): number[] {
    const found: number[] = [];
    for (let no = 0; no < this.#size && found.length < max; no += 1) if (holds(no)) found.push(no);
    return found;
  }

  #grow(): void {
    const capacity = Math.max(4_096, this.#capacity * 2);
    this.#state = grown(this.#state, new Uint8Array(capacity));
    this.#repeats = grown(this.#repeats, new Uint8Array(capacity));
    this.#partner = grown(this.#partner, new Uint8Array(capacity));
    this.#transaction = grown(this.#transaction, new Uint32Array(capacity));
    this.#notification = grown(this.#notification, new Uint32Array(capacity));
    this.#capacity = capacity;
  }
}

function grown<Column extends Uint8Array | Uint32Array>(old: Column, column: Column): Column {
  column.set(old);
  return column;
}
