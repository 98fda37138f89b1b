import { currencyDecimals, type Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { answeredOr, inherit, type OriginalFacts, type OtherTerminal, type SuccessorNumbers } from "./inherit.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { PreAuthCompleteRequest } from "./request.ts";
import { amountRule } from "./rules.ts";
import type { TransactionStart } from "./sale.ts";

/** The IPN facts of a PreAuth-Complete, by the names of section 2.2. */
export interface PreAuthCompleteFacts {
  readonly kind: "card";
  readonly command: "PREAUTH_COMPLETE";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedPreAuthComplete {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: PreAuthCompleteFacts;
  /** Whether a Reversal of the Complete follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/** Checks the amount again, now that the original's currency is known. */
export function followingAmountProblem(amount: string, currency: string): FieldProblem | undefined {
  return amountRule(amount, currencyDecimals(currency));
}

/** The facts of a PreAuth-Complete at INIT: its amount is its own, its batch is the one open now. */
export function beginPreAuthComplete(
  request: PreAuthCompleteRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  elsewhere?: OtherTerminal,
): PreAuthCompleteFacts {
  const fields = { ...inherit(original, request, terminal, start, elsewhere), amount: request.amount };
  return { kind: "card", command: "PREAUTH_COMPLETE", fields };
}

/** The same facts once the outcome is known. */
export function completePreAuthComplete(
  begun: PreAuthCompleteFacts,
  outcome: AcquirerOutcome,
  signing: Signing,
): CompletedPreAuthComplete {
  const { state, isoResponseCode, reverse, answer, warnings } = judge(outcome, signing);
  const approveCode =
    state === "SUCCESS" ? answeredOr(answer.approveCode, begun.fields["approveCode"]) : answer.approveCode;
  const tc = answeredOr(answer.tc, begun.fields["tc"]);
  const fields = { ...begun.fields, status: state, isoResponseCode, approveCode, refId: answer.refId, tc };
  return { state, facts: { ...begun, fields }, reverse, warnings };
}
