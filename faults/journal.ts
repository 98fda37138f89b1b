import type { ReceivedIpn } from "@paybell/partner";

/**
 * All names of a command are made from its number, which can be read back: so the journal needs no table of names.
 */
const merchantTransIdForm = /^f-(\d+)$/;

export function merchantTransIdOf(no: number): string {
  return `f-${no}`;
}

export function externalIdOf(no: number): string {
  return `x-${no}`;
}

/** The number in a merchantTransId; undefined for one that is not ours. */
export function numberOf(merchantTransId: string): number | undefined {
  const [, digits] = merchantTransIdForm.exec(merchantTransId) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

/** A UUID v4 that holds the number in its last twelve digits. */
export function reqIdOf(no: number): string {
  return `fa170000-0000-4000-8000-${no.toString(16).padStart(12, "0")}`;
}

export function numberOfReqId(reqId: string): number {
  return Number.parseInt(reqId.slice(-12), 16);
}

/** In VND, without decimals; neighbours differ, so that a swapped amount is noticed. */
export function amountOf(no: number): number {
  return 1_000 + ((no * 7_919) % 89_989);
}

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

/** What is known of one command. */
interface Entry {
  readonly partner: number;
  /** Numbers whose IPNs must have been accepted before its own is sent. */
  readonly before: readonly number[];
  isAccepted: boolean;
  isRefused: boolean;
  isDelivered: boolean;
  /** Arrivals of its IPN after the first. */
  repeats: number;
  transactionId?: string;
  notificationId?: string;
  /** The error with which the service itself ended it, although the acquirer approves it. */
  declined?: string;
}

/** Requests to the service, its answers, and the deliveries that partners accepted, by command. */
export class Journal {
  readonly #entries: Entry[] = [];
  /** By partner: taken by the service and not delivered yet. */
  readonly #owedTo: number[] = [];
  readonly ghosts: Ghost[] = [];
  readonly orderViolations: OrderViolation[] = [];
  /** IPNs that came before an earlier one and said so, by their header. */
  outOfOrder = 0;

  /** Commands so far: the next one's number. */
  get size(): number {
    return this.#entries.length;
  }

  get accepted(): number {
    return this.#where(({ isAccepted }) => isAccepted).length;
  }

  get duplicates(): number {
    return this.repeats(0, this.size);
  }

  /**
   * A command that is about to be sent.
   *
   * @param before those whose IPNs must have been accepted before its own is sent
   * @returns its number
   */
  begin(partner: number, before: readonly number[] = []): number {
    const entry = { partner, before, isAccepted: false, isRefused: false, isDelivered: false, repeats: 0 };
    return this.#entries.push(entry) - 1;
  }

  /** The service accepted it: from now on its IPN is owed. */
  accept(no: number, transactionId: string): void {
    const entry = this.#entry(no);
    if (entry.isAccepted) return;
    entry.isAccepted = true;
    if (!entry.isDelivered) this.#owes(entry, 1);
    this.#sameAs(no, "transactionId", transactionId, "it was answered with another transaction");
  }

  /** The service itself ended it with an error of that code, although the acquirer approves it. */
  decline(no: number, code: string): void {
    this.#entry(no).declined = code;
  }

  /** The service refused it for good: no IPN may come. */
  refuse(no: number): void {
    const entry = this.#entry(no);
    if (!entry.isRefused && entry.isDelivered) this.#ghost(no, "it was refused");
    entry.isRefused = true;
  }

  /**
   * An IPN that a partner verified and answers with 2xx now.
   *
   * @returns what is known of it, when it is the first of its command
   */
  deliver(partner: number, received: ReceivedIpn): Delivered | undefined {
    const { ipn, notificationId = "", outOfOrder } = received;
    const no = numberOf(ipn.merchantTransId);
    const entry = this.#entries[no ?? -1];
    if (no === undefined || entry?.partner !== partner) {
      this.#ghost(undefined, `partner ${partner} was sent ${ipn.merchantTransId}, which it never asked for`);
      return undefined;
    }
    this.#sameAs(no, "transactionId", ipn.id, "its IPN is of another transaction");
    this.#sameAs(no, "notificationId", notificationId, "it has a second notification");
    if (entry.isRefused) this.#ghost(no, "it was refused");
    if (received.kind === "card" && received.headers.command === "SALE" && Number(received.ipn.amount) !== amountOf(no))
      this.#ghost(no, `its amount is ${received.ipn.amount} in place of ${amountOf(no)}`);
    if (entry.isDelivered) {
      entry.repeats += 1;
      return undefined;
    }
    if (entry.isAccepted) this.#owes(entry, -1);
    entry.isDelivered = true;
    const missing = entry.before.find((earlier) => !this.#entry(earlier).isDelivered);
    if (outOfOrder) this.outOfOrder += 1;
    else if (missing !== undefined) this.orderViolations.push({ no, before: missing });
    return { no, before: entry.before };
  }

  /** The number of one partner's commands accepted by the service and not delivered yet. */
  owedTo(partner: number): number {
    return this.#owedTo[partner] ?? 0;
  }

  /** The number of those from `from` to less than `to` that are owed. */
  owed(from: number, to: number): number {
    return this.#entries.slice(from, to).filter(isOwed).length;
  }

  /** The number of repeated arrivals of those from `from` to less than `to`. */
  repeats(from: number, to: number): number {
    return this.#entries.slice(from, to).reduce((sum, { repeats }) => sum + repeats, 0);
  }

  /** Their notifications, as far as the receivers know their ids. */
  repeated(from: number, to: number): readonly string[] {
    return this.#entries
      .slice(from, to)
      .flatMap(({ repeats, notificationId }) => (repeats > 0 && notificationId !== undefined ? [notificationId] : []));
  }

  /** Commands from `from` to less than `to` that the service itself declined, with their codes. */
  declined(from: number, to: number): readonly (readonly [no: number, code: string])[] {
    return this.#entries
      .slice(from, to)
      .flatMap(({ declined }, at) => (declined === undefined ? [] : [[from + at, declined] as const]));
  }

  /** Commands that were accepted but never delivered. */
  lost(): readonly number[] {
    return this.#where(isOwed);
  }

  /** Commands that were delivered although the service never accepted them. */
  neverAccepted(): readonly number[] {
    return this.#where(({ isDelivered, isAccepted }) => isDelivered && !isAccepted);
  }

  #entry(no: number): Entry {
    const entry = this.#entries[no];
    if (entry === undefined) throw new Error(`There is no command ${no}.`);
    return entry;
  }

  #owes({ partner }: Entry, change: number): void {
    this.#owedTo[partner] = this.owedTo(partner) + change;
  }

  #sameAs(no: number, name: "transactionId" | "notificationId", id: string, why: string): void {
    const entry = this.#entry(no);
    entry[name] ??= id;
    if (entry[name] !== id) this.#ghost(no, why);
  }

  #ghost(no: number | undefined, why: string): void {
    this.ghosts.push({ no, why });
  }

  #where(holds: (entry: Entry) => boolean): number[] {
    return this.#entries.flatMap((entry, no) => (holds(entry) ? [no] : []));
  }
}

function isOwed({ isAccepted, isDelivered }: Entry): boolean {
  return isAccepted && !isDelivered;
}
