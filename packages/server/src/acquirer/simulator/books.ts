import { isCharging } from "@paybell/contract";
import { BoundedMap } from "../../bounded-map.ts";
import { unknownCode } from "../../response-codes.ts";
import type {
  AcquirerAnswer,
  AuthorisationMessage,
  FollowUpMessage,
  OriginalReference,
  ReversalMessage,
} from "../acquirer.ts";
import type { Batch, Side } from "./batch.ts";
import type { Behaviour } from "./behaviour.ts";

/** Its original is voided, completed, reversed, settled or declined; or it was itself reversed before it arrived. */
export const invalidTransaction = "12";
/** A PreAuth-Complete for more than was authorised. */
const invalidAmount = "13";
/** A Void of another amount than its original's. */
const wrongOriginalAmount = "64";

export type MoneyMessage = AuthorisationMessage | FollowUpMessage;

/** The state of a message in the bank's books. Only approved ones are settled with their batch. */
export type BookingState = "declined" | "stands" | "completed" | "voided" | "reversed" | "settled";

/** One message in the bank's books, whether or not its answer arrived. The card is not kept. */
export interface Booking extends BookingFacts {
  /** The first, and the one that every repeat gets. */
  readonly answer: AcquirerAnswer;
  readonly approved: boolean;
  /** None for a PreAuth and its Void, nor for what was declined. */
  readonly batch: Batch | undefined;
  readonly original: Booking | undefined;
  /** The behaviour for its Voids and PreAuth-Completes, if the card's token asks for one. */
  readonly followUps: Behaviour | undefined;
  reversed: boolean;
  /** The Void or the PreAuth-Complete that was approved on it and is not reversed. */
  followedBy: Booking | undefined;
  refundedMinor: bigint;
}

export interface BookingFacts {
  readonly transactionId: string;
  readonly command: MoneyMessage["command"];
  readonly mid: string;
  readonly tid: string;
  readonly traceNo: string;
  readonly amountMinor: bigint;
  readonly currency: string;
}

export function bookingState(booking: Booking): BookingState {
  if (!booking.approved) return "declined";
  const uploadedAsVoided = booking.batch?.uploaded?.get(booking.transactionId);
  if (uploadedAsVoided !== undefined) return uploadedAsVoided ? "voided" : "settled";
  if (booking.reversed) return "reversed";
  if (booking.followedBy !== undefined) return booking.followedBy.command === "VOID" ? "voided" : "completed";
  return booking.batch?.closed ? "settled" : "stands";
}

/** A PreAuth enters no batch, and a Void that of its original. */
export function entersBatch({ command }: Pick<Booking, "command">): boolean {
  return isCharging(command) || command === "REFUND";
}

function sideOf({ command }: Pick<Booking, "command">): Side {
  if (command === "REFUND") return "refund";
  return entersBatch({ command }) ? "sale" : "void";
}

/** Its batch was settled by the terminal's upload, which does not include it. */
export function isDropped({ batch, original, command, transactionId }: Booking): boolean {
  if (batch?.uploaded === undefined) return false;
  if (command === "VOID") return original === undefined || batch.uploaded.get(original.transactionId) !== true;
  return !batch.uploaded.has(transactionId);
}

/** Hosts look an original up by all of its references, so a ledger that confuses originals is detected. */
export function isOriginalOf(booking: Booking, message: FollowUpMessage): boolean {
  const { traceNo, approveCode, refId } = message.original;
  const { answer } = booking;
  const isNamed = booking.traceNo === traceNo && answer.approveCode === approveCode && answer.refId === refId;
  return isNamed && isOfTerminal(booking, terminalOf(message));
}

/** A PreAuth-Complete and a Refund come from any terminal of the merchant, a Void from its original's. */
function terminalOf({ command, mid, tid, original }: FollowUpMessage) {
  return { mid, tid: command === "VOID" ? tid : original.tid };
}

/** A Reversal carries the traceNo of what it undoes. */
export function isReversedBy(booking: Booking, message: ReversalMessage): boolean {
  const isNamed = booking.traceNo === message.traceNo && booking.command === message.original.command;
  return isNamed && isOfTerminal(booking, message);
}

/** Whether a reference says enough of an original to take it over without having seen it. */
export function describesFully({ traceNo, approveCode, refId }: OriginalReference): boolean {
  return traceNo !== "" && approveCode !== "" && refId !== "";
}

/** Why a Void, PreAuth-Complete or Refund of this original is declined: its code; undefined when it is not. */
export function refusalOf(message: FollowUpMessage, original: Booking | undefined): string | undefined {
  if (original === undefined) return unknownCode;
  if (message.command === "REFUND") return refundRefusalOf(message, original);
  const fits = message.command === "VOID" ? isVoidable(original) : original.command === "PREAUTH";
  if (!fits || bookingState(original) !== "stands" || original.currency !== message.currency) return invalidTransaction;
  if (message.command === "VOID") return original.amountMinor === message.amountMinor ? undefined : wrongOriginalAmount;
  return message.amountMinor > original.amountMinor ? invalidAmount : undefined;
}

function isVoidable({ command }: Booking): boolean {
  return command !== "VOID" && command !== "REFUND";
}

function refundRefusalOf(message: FollowUpMessage, original: Booking): string | undefined {
  if (sideOf(original) !== "sale" || bookingState(original) !== "settled" || original.currency !== message.currency) {
    return invalidTransaction;
  }
  return original.refundedMinor + message.amountMinor > original.amountMinor ? invalidAmount : undefined;
}

function isOfTerminal(booking: Booking, { mid, tid }: Pick<BookingFacts, "mid" | "tid">): boolean {
  return booking.mid === mid && booking.tid === tid;
}

/**
 * Messages that moved money, or should have: every message once, and every Reversal that arrived before its message.
 */
export class Books {
  readonly #bookings: BoundedMap<string, Booking>;
  /** Apart, because they wait for weeks while batches come and go. */
  readonly #preAuths: BoundedMap<string, Booking>;
  readonly #revoked: BoundedMap<string, ReversalMessage["original"]>;

  constructor(bookingsMax: number) {
    this.#bookings = new BoundedMap(bookingsMax);
    this.#preAuths = new BoundedMap(bookingsMax);
    this.#revoked = new BoundedMap(bookingsMax);
  }

  enter(booking: Booking): Booking {
    (booking.command === "PREAUTH" ? this.#preAuths : this.#bookings).set(booking.transactionId, booking);
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
    if (!this.isRevoked(original.transactionId)) this.#revoked.set(original.transactionId, original);
  }

  isRevoked(transactionId: string): boolean {
    return this.#revoked.get(transactionId) !== undefined;
  }
}

function refund({ original }: Booking, amountMinor: bigint): void {
  if (original !== undefined) original.refundedMinor += amountMinor;
}
