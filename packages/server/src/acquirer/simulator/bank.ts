import { BoundedMap } from "../../bounded-map.ts";
import { approvedCode, duplicateCode, partialCode, unknownCode } from "../../response-codes.ts";
import type { AcquirerAnswer, AcquirerMessage, BatchTotals, FollowUpMessage, ReversalMessage } from "../acquirer.ts";
import { answered, BankTerminal, Batch } from "./batch.ts";
import type { Behaviour } from "./behaviour.ts";
import {
  type Booking,
  type BookingFacts,
  type BookingState,
  Books,
  bookingState,
  describesFully,
  entersBatch,
  invalidTransaction,
  isDropped,
  isOriginalOf,
  isReversedBy,
  type MoneyMessage,
  refusalOf,
} from "./books.ts";

/** A number from 0 (included) to 1 (excluded), as Math.random gives. */
export type Random = () => number;

interface BankOptions {
  /**
   * Whether it relies only on its own books, as a real bank does. Default false: the bank lives in one process and ends
   * with it, so bookings of another process's bank are believed. An original that it has never seen is taken over from
   * a Void or PreAuth-Complete that describes it fully, and a Settlement that counts anything the bank has not seen is
   * answered 00.
   */
  readonly strict?: boolean;
  /** The source of approveCode and refId. Default Math.random. */
  readonly random?: Random;
  /** The bound on PreAuths in its books, and on other messages, before the oldest is forgotten. Default 50,000. */
  readonly bookingsMax?: number;
  /** The bound on terminals, before the one it has known longest is forgotten. Default 10,000. */
  readonly terminalsMax?: number;
}

export interface BookingView extends BookingFacts {
  readonly responseCode: string;
  readonly state: BookingState;
}

interface BatchView extends BatchTotals {
  readonly batchNo: string;
}

/** A bank's books, to compare with the ledger. Several links may share one bank. */
export class SimulatedBank {
  readonly #strict: boolean;
  readonly #random: Random;
  readonly #books: Books;
  readonly #terminals: BoundedMap<string, BankTerminal>;

  constructor(options: BankOptions = {}) {
    const { strict = false, random = Math.random, bookingsMax = 50_000, terminalsMax = 10_000 } = options;
    this.#strict = strict;
    this.#random = random;
    this.#books = new Books(bookingsMax);
    this.#terminals = new BoundedMap(terminalsMax);
  }

  /**
   * Acts on a message and answers it; one that comes again is answered as the first time, and not acted on again.
   * `followUps` is how the Voids and PreAuth-Completes of this transaction are to be treated.
   */
  receive(message: AcquirerMessage, behaviour: Behaviour = {}, followUps?: Behaviour): AcquirerAnswer {
    const { declines } = behaviour;
    switch (message.command) {
      case "LOGON":
        return answered(declines ?? approvedCode);
      case "REVERSAL":
        return answered(declines ?? this.#reverse(message));
      case "BATCH_UPLOAD":
        if (declines === undefined && !this.#terminal(message).upload(message)) return answered(duplicateCode);
        return answered(declines ?? approvedCode);
      case "SETTLEMENT":
        return this.#terminal(message).settle(message, declines, () => refId(this.#random));
      default:
        return this.#move(message, behaviour, followUps);
    }
  }

  /** Undefined for a transaction that it never saw, has forgotten, or removed by a Batch Upload. */
  find(transactionId: string): BookingView | undefined {
    const booking = this.#books.find(transactionId);
    return booking && viewOf(booking);
  }

  /** The PreAuths, then all others, each in the order in which they came. */
  all(): BookingView[] {
    return this.#books.all().map(viewOf);
  }

  /** The totals of a terminal's open batch, in one currency. */
  openBatch(mid: string, tid: string, currency: string): BatchView | undefined {
    return batchView(this.#terminals.get(terminalKey({ mid, tid }))?.open, currency);
  }

  /** The totals of a terminal's last settled batch, in one currency. */
  settledBatch(mid: string, tid: string, currency: string): BatchView | undefined {
    return batchView(this.#terminals.get(terminalKey({ mid, tid }))?.settled, currency);
  }

  followUpsOf(transactionId: string): Behaviour | undefined {
    return this.#books.find(transactionId)?.followUps;
  }

  #move(message: MoneyMessage, behaviour: Behaviour, followUps: Behaviour | undefined): AcquirerAnswer {
    if (!behaviour.forgetsReversals && this.#books.isRevoked(message.transactionId))
      return answered(invalidTransaction);
    const seen = this.#books.seen(message.transactionId);
    if (seen === undefined) return this.#books.enter(this.#judge(message, behaviour, followUps)).answer;
    if (seen.command !== message.command) return answered(duplicateCode);
    // Repeating an approval that was undone is worse than giving another answer than before.
    return seen.reversed || isDropped(seen) ? answered(invalidTransaction) : seen.answer;
  }

  #judge(message: MoneyMessage, { declines, approves }: Behaviour, followUps: Behaviour | undefined): Booking {
    const open = { ...factsOf(message), ...untouched, followUps };
    const declined = (code: string): Booking => {
      return { ...open, answer: answered(code), approved: false, batch: undefined, original: undefined };
    };
    if (declines !== undefined) return declined(declines);
    const original = "original" in message ? this.#originalOf(message) : undefined;
    const refusal = "original" in message ? refusalOf(message, original) : undefined;
    if (refusal !== undefined) return declined(refusal);
    const batch = entersBatch(message) ? this.#terminal(message).batchFor(message.batchNo) : original?.batch;
    if (entersBatch(message) && batch === undefined) return declined(invalidTransaction);
    const { answer, amountMinor } = this.#approval(message, approves);
    return { ...open, amountMinor, answer, approved: true, batch, original };
  }

  /** Code 10 approves half of the amount of a Sale or PreAuth. */
  #approval(
    { command, amountMinor }: MoneyMessage,
    responseCode = approvedCode,
  ): { readonly answer: AcquirerAnswer; readonly amountMinor: bigint } {
    const code = command === "VOID" ? "" : approveCode(this.#random);
    const answer = { responseCode, approveCode: code, refId: refId(this.#random), tc: "" };
    const isPartial = responseCode === partialCode && !isFollowUp(command) && amountMinor > 1n;
    if (!isPartial) return { answer, amountMinor };
    return { answer: { ...answer, approvedMinor: amountMinor / 2n }, amountMinor: amountMinor / 2n };
  }

  #originalOf(message: FollowUpMessage): Booking | undefined {
    const { transactionId } = message.original;
    const known = this.#books.find(transactionId);
    if (known !== undefined) return isOriginalOf(known, message) ? known : undefined;
    const believed = !this.#strict && !this.#books.isRevoked(transactionId) && describesFully(message.original);
    return believed ? this.#takeOver(message) : undefined;
  }

  /** Books an original that another process's bank approved. A Void outside every batch is a PreAuth's. */
  #takeOver(message: FollowUpMessage): Booking {
    const { transactionId, tid, traceNo, approveCode, refId } = message.original;
    const isPreAuth = message.command === "PREAUTH_COMPLETE" || message.batchNo === "";
    const batch = isPreAuth ? undefined : this.#believedBatch(message);
    if (batch !== undefined) batch.seenInPart = true;
    return this.#books.enter({
      ...factsOf(message),
      transactionId,
      tid,
      command: isPreAuth ? "PREAUTH" : "SALE",
      traceNo,
      answer: { responseCode: approvedCode, approveCode, refId, tc: "" },
      approved: true,
      batch,
      original: undefined,
      followUps: undefined,
      ...untouched,
    });
  }

  /** The refunded transaction was settled by another process's bank. */
  #believedBatch(message: FollowUpMessage): Batch | undefined {
    if (message.command !== "REFUND") return this.#terminal(message).batchFor(message.batchNo);
    const settled = new Batch("");
    settled.closed = true;
    return settled;
  }

  /** The answer's code: the same Reversal again gets it again, because what it left behind says so. */
  #reverse(message: ReversalMessage): string {
    const booking = this.#books.find(message.original.transactionId);
    if (booking === undefined) this.#books.revoke(message.original);
    if (booking === undefined || !isReversedBy(booking, message)) return unknownCode;
    if (!booking.approved || booking.reversed) return approvedCode;
    // A settled or completed transaction cannot be reversed, because others depend on it.
    if (booking.batch?.closed || bookingState(booking) === "completed") return invalidTransaction;
    this.#books.undo(booking);
    return approvedCode;
  }

  #terminal(of: { readonly mid: string; readonly tid: string }): BankTerminal {
    const key = terminalKey(of);
    const known = this.#terminals.get(key);
    if (known !== undefined) return known;
    const terminal = new BankTerminal(key, this.#strict);
    this.#terminals.set(key, terminal);
    return terminal;
  }
}

/** Nothing has followed it yet. */
const untouched = { reversed: false, followedBy: undefined, refundedMinor: 0n };

function isFollowUp(command: MoneyMessage["command"]): boolean {
  return command !== "SALE" && command !== "PREAUTH";
}

function terminalKey({ mid, tid }: { readonly mid: string; readonly tid: string }): string {
  return `${mid.length}/${mid}/${tid}`;
}

function factsOf({ transactionId, command, mid, tid, traceNo, amountMinor, currency }: BookingFacts): BookingFacts {
  return { transactionId, command, mid, tid, traceNo, amountMinor, currency };
}

function viewOf(booking: Booking): BookingView {
  return { ...factsOf(booking), responseCode: booking.answer.responseCode, state: bookingState(booking) };
}

function batchView(batch: Batch | undefined, currency: string): BatchView | undefined {
  return batch && { batchNo: batch.batchNo, ...batch.totals(currency) };
}

const approveCodeAlphabet = "0123456789ABCDEFGHJKLMNPQRSTUVWXYZ";
const approveCodeLength = 6;
const refIdDigits = 12;

/** Six letters and digits, as issuers give them: ISO 8583 field 38. */
function approveCode(random: Random): string {
  let code = "";
  for (let at = 0; at < approveCodeLength; at += 1) {
    code += approveCodeAlphabet.charAt(Math.floor(random() * approveCodeAlphabet.length));
  }
  return code;
}

/** Twelve digits, as acquirers give them: ISO 8583 field 37. */
function refId(random: Random): string {
  return Math.floor(random() * 10 ** refIdDigits)
    .toString()
    .padStart(refIdDigits, "0");
}
