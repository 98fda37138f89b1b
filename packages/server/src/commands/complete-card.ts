import type { CardCommand, Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";

/** The IPN facts of a card command, by the names of section 2.2. */
export interface CardCommandFacts {
  readonly kind: "card";
  readonly command: CardCommand;
  /** True for the Void of a PreAuth, whose transaction_type differs. */
  readonly voidsPreAuth?: boolean;
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedCardCommand {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: CardCommandFacts;
  /** Whether a Reversal follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/**
 * The facts of a card command once its outcome is known: from here on they are frozen. A value that the acquirer leaves
 * out stays as at INIT, where a follow-up has its original's; the approval code only if the command succeeded.
 */
export function completeCard(
  begun: CardCommandFacts,
  outcome: AcquirerOutcome,
  signing: Signing,
): CompletedCardCommand {
  const { state, isoResponseCode, reverse, answer, warnings } = judge(outcome, signing);
  const atInit = (name: "approveCode" | "tc") => (answer[name] === "" ? (begun.fields[name] ?? "") : answer[name]);
  const approveCode = state === "SUCCESS" ? atInit("approveCode") : answer.approveCode;
  const { refId } = answer;
  const fields = { ...begun.fields, status: state, isoResponseCode, approveCode, refId, tc: atInit("tc") };
  return { state, facts: { ...begun, fields }, reverse, warnings };
}
