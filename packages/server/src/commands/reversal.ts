import type { AcquirerOutcome } from "./outcome.ts";
import type { ReversalRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";
import {
  beginSystemCommand,
  type CompletedSystemCommand,
  completeSystemCommand,
  type SystemCommandFacts,
} from "./system.ts";

export type ReversalFacts = SystemCommandFacts;

/** What a Reversal takes from its original; its trace number too. */
export interface ReversedOriginal {
  readonly id: string;
  readonly tid: string;
  readonly mid: string;
  readonly traceNo: string;
}

/** Nothing of the original stands: it was undone, or the acquirer never saw it. */
const doneCodes: ReadonlySet<string> = new Set(["00", "25"]);

/** The acquirer, or what lies behind it, cannot do it now: in progress, again, no answer, cut-over, away, broken. */
const againCodes: ReadonlySet<string> = new Set(["09", "19", "68", "90", "91", "96"]);

/** How a Reversal stands after it was asked: `pending` is asked again, `parked` is the operator's to settle. */
export function reversalStateAfter(outcome: AcquirerOutcome): "pending" | "done" | "parked" {
  if (outcome.kind !== "answered") return "pending";
  const { responseCode } = outcome.answer;
  if (doneCodes.has(responseCode)) return "done";
  return againCodes.has(responseCode) ? "pending" : "parked";
}

/** The facts of a partner's Reversal at INIT; `original` undefined: nothing has come under its originalReqId yet. */
export function beginReversal(
  request: ReversalRequest,
  original: ReversedOriginal | undefined,
  start: TransactionStart,
): ReversalFacts {
  const { tid = "", mid = "", traceNo = "", id = "" } = original ?? {};
  const own = { originalId: id, originalReqId: request.originalReqId ?? "" };
  return beginSystemCommand(start, { reqId: request.reqId, tid, mid, traceNo }, own);
}

/** An acquirer that never saw the original (25) leaves nothing standing either: SUCCESS, and only 00 is success. */
export function completeReversal(begun: ReversalFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  return reversalStateAfter(outcome) === "done" ? succeed(begun) : completeSystemCommand(begun, outcome);
}

/** The Reversal of what has not come yet: it is remembered, and whatever comes under that reqId is refused. */
export function completeReversalOfUnknown(begun: ReversalFacts): CompletedSystemCommand {
  return succeed(begun);
}

function succeed(begun: ReversalFacts): CompletedSystemCommand {
  const fields = { ...begun.fields, status: "SUCCESS", isoResponseCode: "00" };
  return { state: "SUCCESS", facts: { ...begun, fields }, warnings: [] };
}
