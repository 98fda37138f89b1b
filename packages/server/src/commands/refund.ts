import type { Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { inherit, type OriginalFacts, type OtherTerminal, type SuccessorNumbers } from "./inherit.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { RefundRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** A Refund's side of the IPN, by the names of section 2.2. Only a partner that agreed to it gets one. */
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

/** The facts of a Refund at INIT: amount, invoice number and batch are its own, and so is its approval. */
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
