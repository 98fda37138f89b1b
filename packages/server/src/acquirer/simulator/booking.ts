import type {
  AcquirerAnswer,
  AuthorisationMessage,
  OriginalReference,
  PreAuthCompleteMessage,
  ReversalMessage,
  VoidMessage,
} from "../acquirer.ts";
import { invalidAmount, invalidTransaction, unknownRecord, wrongOriginalAmount } from "./answer.ts";
import type { Batch } from "./batch.ts";
import type { Behaviour } from "./behaviour.ts";

/** A message that moves money. */
export type MoneyMessage = AuthorisationMessage | FollowUpMessage;
/** One that builds on an earlier one, and knows the card by it alone. */
export type FollowUpMessage = PreAuthCompleteMessage | VoidMessage;

/** What became of a message in the bank's books. Only what stands when its batch is settled is settled. */
export type Standing = "declined" | "stands" | "completed" | "voided" | "reversed" | "settled";

/** One message as the bank holds it, whatever became of its answer. The card is not kept. */
export interface Booking extends BookingFacts {
  /** The first, and the one that every repeat gets. */
  readonly answer: AcquirerAnswer;
  readonly approved: boolean;
  /** None for a PreAuth and its Void, nor for what was declined. */
  readonly batch: Batch | undefined;
  readonly original: Booking | undefined;
  /** How the card's token has its Voids and PreAuth-Completes treated. */
  readonly followUps: Behaviour | undefined;
  reversed: boolean;
  /** The Void or the PreAuth-Complete that was approved on it and is not reversed. */
  followedBy: Booking | undefined;
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

export function standing(booking: Booking): Standing {
  if (!booking.approved) return "declined";
  const uploadedAsVoided = booking.batch?.uploaded?.get(booking.transactionId);
  if (uploadedAsVoided !== undefined) return uploadedAsVoided ? "voided" : "settled";
  if (booking.reversed) return "reversed";
  if (booking.followedBy !== undefined) return booking.followedBy.command === "VOID" ? "voided" : "completed";
  return booking.batch?.closed ? "settled" : "stands";
}

/** A Sale and a PreAuth-Complete count as sales of their batch, a PreAuth and a Void do not. */
export function countsAsSale({ command }: Pick<Booking, "command">): boolean {
  return command === "SALE" || command === "PREAUTH_COMPLETE";
}

/** Its batch was settled by what the terminal uploaded, and that does not tell of it. */
export function isDropped({ batch, original, command, transactionId }: Booking): boolean {
  if (batch?.uploaded === undefined) return false;
  if (command === "VOID") return original === undefined || batch.uploaded.get(original.transactionId) !== true;
  return !batch.uploaded.has(transactionId);
}

/** Hosts look an original up by all that is said of it: a ledger that mixes originals up is found out. */
export function isOriginalOf(booking: Booking, message: FollowUpMessage): boolean {
  const { traceNo, approveCode, refId } = message.original;
  const { answer } = booking;
  const isNamed = booking.traceNo === traceNo && answer.approveCode === approveCode && answer.refId === refId;
  return isNamed && isOfTerminal(booking, message);
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

/** Why a Void or PreAuth-Complete of this original is declined: its code; undefined when it is not. */
export function refusalOf(message: FollowUpMessage, original: Booking | undefined): string | undefined {
  if (original === undefined) return unknownRecord;
  const fits = message.command === "VOID" ? original.command !== "VOID" : original.command === "PREAUTH";
  if (!fits || standing(original) !== "stands" || original.currency !== message.currency) return invalidTransaction;
  if (message.command === "VOID") return original.amountMinor === message.amountMinor ? undefined : wrongOriginalAmount;
  return message.amountMinor > original.amountMinor ? invalidAmount : undefined;
}

function isOfTerminal(booking: Booking, { mid, tid }: Pick<BookingFacts, "mid" | "tid">): boolean {
  return booking.mid === mid && booking.tid === tid;
}
