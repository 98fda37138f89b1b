import type { Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { inherit, type OriginalFacts, type OtherTerminal, type SuccessorNumbers } from "./inherit.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { RefundRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** The IPN facts of a Refund, by the names of section 2.2. Only a partner with an agreement gets one. */
export interface RefundFacts {
  readonly kind: "card";
  readonly command: "REFUND";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedRefund {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: RefundFacts;
  /** Whether a Reversal of the Refund follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a Refund at INIT: amount, invoice number, batch and approval are its own. */
export function beginRefund(
  request: RefundRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  elsewhere?: OtherTerminal,
): RefundFacts {
  const inherited = inherit(original, request, terminal, start, elsewhere);
  return { kind: "card", command: "REFUND", fields: { ...inherited, amount: request.amount, approveCode: "", tc: "" } };
}

/** The same facts once the outcome is known. */
export function completeRefund(begun: RefundFacts, outcome: AcquirerOutcome, signing: Signing): CompletedRefund {
  const { state, isoResponseCode, reverse, answer, warnings } = judge(outcome, signing);
  const { approveCode, refId } = answer;
  const fields = { ...begun.fields, status: state, isoResponseCode, approveCode, refId, tc: answer.tc };
  return { state, facts: { ...begun, fields }, reverse, warnings };
}
