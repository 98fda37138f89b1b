import { type CardCommand, currencyDecimals, type Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { formatAmount } from "./amount.ts";
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
  /** The part of the amount that was approved; undefined: all of it. */
  readonly amountMinor?: bigint;
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
  const { state, isoResponseCode, reverse, answer, warnings, approvedMinor } = judge(outcome, signing);
  const atInit = (name: "approveCode" | "tc") => (answer[name] === "" ? (begun.fields[name] ?? "") : answer[name]);
  const approveCode = state === "SUCCESS" ? atInit("approveCode") : answer.approveCode;
  const { refId } = answer;
  const { currency = "", amount = "" } = begun.fields;
  const part = approvedMinor === undefined ? amount : formatAmount(approvedMinor, currencyDecimals(currency) ?? 0);
  const ended = { status: state, isoResponseCode, approveCode, refId, tc: atInit("tc") };
  const fields = { ...begun.fields, ...ended, amount: part };
  const amountMinor = approvedMinor !== undefined && { amountMinor: approvedMinor };
  return { state, facts: { ...begun, fields }, ...amountMinor, reverse, warnings };
}
