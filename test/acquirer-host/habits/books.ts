import type { SeededRandom } from "../../../faults/random.ts";
import type { Message } from "./standard.ts";

/** The state of a booking in the host's books. A declined message has none. */
export type Standing = "stands" | "voided" | "completed" | "reversed";

export interface Booking {
  readonly key: string;
  readonly tid: string;
  readonly batchNo: string;
  readonly kind: Kind;
  /** In the host's smallest unit. */
  amount: bigint;
  standing: Standing;
  readonly original: Booking | undefined;
  /** Nobody asked for it. */
  readonly isForced: boolean;
  readonly site: string;
  readonly atMs: number;
  /** The sum of its Refunds. */
  refunded: bigint;
}

/** A message, and the site of the host at which it arrived. */
export interface Received extends Message {
  readonly site: string;
}

type Kind = "sale" | "preauth" | "complete" | "refund" | "void";

const kinds: Readonly<Record<string, Kind>> = {
  "000000": "sale",
  "300000": "preauth",
  "330000": "complete",
  "200000": "refund",
  "020000": "void",
};

/** One site learns so late of what the other one has booked. */
const copiedAfterMs = 2_000;

/** A message of a terminal by its trace number, as field 90 names an original. */
export function keyOf({ fields }: Message): string {
  return `${fields.get(41)?.trim()} ${fields.get(11)}`;
}

/** The books of the host, at both of its sites. It remembers no Reversal of what it does not know, as many hosts. */
export class Books {
  readonly bookings = new Map<string, Booking>();
  /** Terminal and number of each batch that is settled. */
  readonly settled = new Set<string>();
  readonly #totals = new Map<string, Booking[]>();
  /** The trace numbers of what was uploaded of a batch. */
  readonly #uploaded = new Map<string, Set<string>>();

  /** @returns the response code; the same one again for a repeat */
  book(message: Received, amount = BigInt(message.fields.get(4) ?? 0)): string {
    const { fields } = message;
    const kind = kinds[fields.get(3) ?? ""];
    if (kind === undefined) return "12";
    const known = this.bookings.get(keyOf(message));
    if (known !== undefined) return known.standing === "reversed" ? "12" : "00";
    const original = this.#originalOf(message);
    if (kind === "void" || kind === "complete") {
      const isOpen = original?.standing === "stands" && (kind === "void" || original.kind === "preauth");
      if (!isOpen) return "12";
      original.standing = kind === "void" ? "voided" : "completed";
    }
    if (kind === "refund") {
      if (original?.standing !== "stands" || !this.#isSettled(original)) return "12";
      if (original.refunded + amount > original.amount) return "13";
      original.refunded += amount;
    }
    this.#enter({
      ...{ key: keyOf(message), tid: fields.get(41)?.trim() ?? "", batchNo: fields.get(60) ?? "" },
      ...{ kind, amount, standing: "stands", original, isForced: false },
      ...{ site: message.site, atMs: performance.now(), refunded: 0n },
    });
    return "00";
  }

  /** A charge that no message asked for. */
  force(key: string, amount: bigint): void {
    const tid = key.split(" ")[0] ?? "";
    this.#enter({
      ...{ key, tid, batchNo: "forced", kind: "sale", amount, standing: "stands" },
      ...{ original: undefined, isForced: true, site: "", atMs: performance.now(), refunded: 0n },
    });
  }

  reverse(message: Received): string {
    const booking = this.#originalOf(message);
    if (booking === undefined) return "25";
    if (booking.standing === "reversed") return "00";
    if (booking.standing !== "stands") return "12";
    this.#undo(booking);
    return "00";
  }

  /** By itself: a charge that is not settled yet, and that nobody knows to be reversed. */
  reverseOne(random: SeededRandom): Booking | undefined {
    const open = [...this.bookings.values()].slice(-200).filter((one) => {
      const isCharge = one.kind === "sale" || one.kind === "preauth";
      return isCharge && one.standing === "stands" && !one.isForced && !this.#isSettled(one);
    });
    const booking = open.length === 0 ? undefined : random.pick(open);
    if (booking !== undefined) this.#undo(booking);
    return booking;
  }

  #undo(booking: Booking): void {
    booking.standing = "reversed";
    if (booking.original === undefined) return;
    // The transaction that it had voided or completed is open again.
    if (booking.kind === "refund") booking.original.refunded -= booking.amount;
    else booking.original.standing = "stands";
  }

  #isSettled({ tid, batchNo }: Booking): boolean {
    return this.settled.has(`${tid} ${batchNo}`);
  }

  /**
   * 95 if the terminal has other totals of its batch; after an upload, if that was not the whole batch. A batch is
   * settled once: the same answer again to a repeat.
   */
  settle({ fields }: Message): string {
    const batch = batchOf(fields);
    if (this.settled.has(batch)) return "00";
    const given = fields.get(63) ?? "";
    const uploaded = this.#uploaded.get(batch)?.size ?? 0;
    const agrees = fields.get(3) === "960000" ? Number(given.slice(0, 5)) === uploaded : given === this.#sides(batch);
    if (!agrees) this.#uploaded.delete(batch);
    else this.settled.add(batch);
    return agrees ? "00" : "95";
  }

  /** It finds other totals, unless it has settled the batch: what was uploaded of it does not count any more. */
  differs({ fields }: Message): boolean {
    this.#uploaded.delete(batchOf(fields));
    return !this.settled.has(batchOf(fields));
  }

  /** 94 if it has it already. */
  upload({ fields }: Message): string {
    const batch = batchOf(fields);
    const uploaded = this.#uploaded.get(batch) ?? new Set();
    const trace = fields.get(90)?.slice(4, 10) ?? "";
    if (uploaded.has(trace)) return "94";
    this.#uploaded.set(batch, uploaded.add(trace));
    return "00";
  }

  #sides(batch: string): string {
    const standing = (this.#totals.get(batch) ?? []).filter(({ standing: now }) => now !== "reversed");
    const [sales, voids] = [
      standing.filter(({ kind }) => kind === "sale" || kind === "complete"),
      standing.filter(({ kind }) => kind === "void"),
    ];
    const side = (all: readonly Booking[]) => {
      const total = all.reduce((sum, { amount }) => sum + amount, 0n);
      return `${all.length.toString().padStart(5, "0")}${total.toString().padStart(14, "0")}`;
    };
    return `${side(sales)}${side(voids)}${side(standing.filter(({ kind }) => kind === "refund"))}`;
  }

  #enter(booking: Booking): void {
    this.bookings.set(booking.key, booking);
    const batch = `${booking.tid} ${booking.batchNo}`;
    const all = this.#totals.get(batch);
    if (all === undefined) this.#totals.set(batch, [booking]);
    else all.push(booking);
  }

  /** Field 90: the original's type, trace number and time. Field 61: its terminal, where that is another one. */
  #originalOf({ fields, site }: Received): Booking | undefined {
    const trace = fields.get(90)?.slice(4, 10);
    const tid = fields.get(61) ?? fields.get(41) ?? "";
    const booking = trace === undefined ? undefined : this.bookings.get(`${tid.trim()} ${trace}`);
    if (booking === undefined || booking.site === site) return booking;
    return performance.now() - booking.atMs < copiedAfterMs ? undefined : booking;
  }
}

function batchOf(fields: Message["fields"]): string {
  return `${fields.get(41)?.trim()} ${fields.get(60)}`;
}
