import { approvedCode, duplicateCode, unknownCode } from "../response-codes.ts";
import type { TransactionStart } from "./card-facts.ts";
import type { AcquirerOutcome } from "./outcome.ts";
import type { ReversalRequest } from "./requests/request.ts";
import type { ReversalState } from "./states.ts";
import { beginSystemCommand, type CompletedSystemCommand, type SystemFacts } from "./system.ts";

/** The fields that a Reversal inherits from its original, including its trace number. */
export interface ReversedOriginal {
  readonly id: string;
  readonly tid: string;
  readonly mid: string;
  readonly traceNo: string;
}

/**
 * The acquirer, or a system behind it, cannot process it now: in progress, repeat, no answer, cut-over, unavailable,
 * malfunction.
 */
export const againCodes: ReadonlySet<string> = new Set(["09", "19", "68", "90", "91", "96"]);

// What requests a Reversal again counts as a try, so both may come earlier: then the operator decides sooner, and nothing
// ends as done that would not have.

/** Three to six minutes after the first try: from then on the operator should know that it is not answered. */
export const reportedLateAfterTries = 8;
/** A host that does not know the original after so many tries will not know it later. */
const unknownIsFinalAfterTries = 8;

type ReversalEnding = Exclude<ReversalState, "stands">;

/** The circumstances of a try, on which the meaning of a 25 depends. */
export interface ReversalTry {
  /** The number of tries, this one included. */
  readonly tries: number;
  /** When it was sent, its original could still reach the books. */
  readonly mayOvertake: boolean;
  /** The host that answered is certainly the one to which the original was sent. */
  readonly isSameSite: boolean;
  /** An earlier try was answered that the original is not known. */
  readonly wasUnknown: boolean;
}

/** The state of a Reversal after it was sent: `pending` is sent again, `parked` is left to the operator. */
export function reversalStateAfter(outcome: AcquirerOutcome, how: ReversalTry): ReversalEnding {
  if (outcome.kind !== "answered") return "pending";
  const { responseCode } = outcome.answer;
  if (responseCode === approvedCode) return "done";
  if (responseCode === unknownCode) return afterUnknown(how);
  if (responseCode === duplicateCode && how.tries > 1) return afterDuplicate(how);
  return againCodes.has(responseCode) ? "pending" : "parked";
}

/** Another host may have the original in its books, whenever it says that it has not. */
function afterUnknown({ tries, mayOvertake, isSameSite }: ReversalTry): ReversalEnding {
  if (mayOvertake) return "pending";
  if (isSameSite) return "done";
  return tries < unknownIsFinalAfterTries ? "pending" : "parked";
}

/**
 * A host that recognises repeats does not look again for an original that it did not know the first time. The answer
 * that said so may have been lost, so a 94 says nothing while the original can still reach the books.
 */
function afterDuplicate({ mayOvertake, wasUnknown }: ReversalTry): ReversalEnding {
  if (mayOvertake) return "pending";
  return wasUnknown ? "parked" : "done";
}

/** The facts of a partner's Reversal at INIT; `original` undefined: its originalReqId has not arrived yet. */
export function beginReversal(
  request: ReversalRequest,
  original: ReversedOriginal | undefined,
  start: TransactionStart,
): SystemFacts {
  const { tid = "", mid = "", traceNo = "", id = "" } = original ?? {};
  const own = { originalId: id, originalReqId: request.originalReqId ?? "" };
  return beginSystemCommand(start, { reqId: request.reqId, tid, mid, traceNo }, own);
}

/**
 * The facts of a Reversal that succeeded: nothing is charged, also if the acquirer never saw the original (25). That of
 * a command that has not arrived does: it is recorded, and its reqId is refused when it arrives.
 */
export function succeedReversal(begun: SystemFacts): CompletedSystemCommand {
  const fields = { ...begun.fields, status: "SUCCESS", isoResponseCode: approvedCode };
  return { state: "SUCCESS", facts: { ...begun, fields }, warnings: [] };
}
