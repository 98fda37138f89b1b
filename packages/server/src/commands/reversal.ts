import type { AcquirerOutcome } from "./outcome.ts";
import type { ReversalRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";
import { beginSystemCommand, type CompletedSystemCommand, completeSystemCommand, type SystemFacts } from "./system.ts";

/** The fields that a Reversal inherits from its original, including its trace number. */
export interface ReversedOriginal {
  readonly id: string;
  readonly tid: string;
  readonly mid: string;
  readonly traceNo: string;
}

/** The original is not charged: it was reversed, or the acquirer never saw it. */
const doneCodes: ReadonlySet<string> = new Set(["00", "25"]);

/**
 * The acquirer, or a system behind it, cannot process it now: in progress, repeat, no answer, cut-over, unavailable,
 * malfunction.
 */
const againCodes: ReadonlySet<string> = new Set(["09", "19", "68", "90", "91", "96"]);

/** The state of a Reversal after it was sent: `pending` is sent again, `parked` is left to the operator. */
export function reversalStateAfter(outcome: AcquirerOutcome): "pending" | "done" | "parked" {
  if (outcome.kind !== "answered") return "pending";
  const { responseCode } = outcome.answer;
  if (doneCodes.has(responseCode)) return "done";
  return againCodes.has(responseCode) ? "pending" : "parked";
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

/** If the acquirer never saw the original (25), nothing is charged either: SUCCESS, and only 00 is success. */
export function completeReversal(begun: SystemFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  return reversalStateAfter(outcome) === "done" ? succeedReversal(begun) : completeSystemCommand(begun, outcome);
}

/**
 * The facts of a Reversal that succeeded. That of a command that has not arrived does: it is recorded, and its reqId is
 * refused when it arrives.
 */
export function succeedReversal(begun: SystemFacts): CompletedSystemCommand {
  const fields = { ...begun.fields, status: "SUCCESS", isoResponseCode: "00" };
  return { state: "SUCCESS", facts: { ...begun, fields }, warnings: [] };
}
