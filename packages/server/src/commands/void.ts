import type { Signing } from "@paybell/contract";
import type { FieldProblem } from "../errors.ts";
import { answeredOr, inherit, type OriginalFacts, type SuccessorNumbers } from "./inherit.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { VoidRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** The IPN facts of a Void, by the names of section 2.2. */
export interface VoidFacts {
  readonly kind: "card";
  readonly command: "VOID";
  /** Its transaction_type differs then. */
  readonly voidsPreAuth?: true;
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedVoid {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: VoidFacts;
  /** Whether a Reversal of the Void follows. */
  readonly reverse: boolean;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a Void at INIT. Its amount is the voided one's; a PreAuth's Void is in no batch. */
export function beginVoid(
  request: VoidRequest,
  original: OriginalFacts,
  terminal: SuccessorNumbers,
  start: TransactionStart,
  { voidsPreAuth }: { readonly voidsPreAuth: boolean },
): VoidFacts {
  const numbers = { ...terminal, batchNo: voidsPreAuth ? "" : terminal.batchNo };
  const fields = inherit(original, request, numbers, start);
  const facts = { kind: "card", command: "VOID", fields } as const;
  return voidsPreAuth ? { ...facts, voidsPreAuth } : facts;
}

/** The same facts once the outcome is known. */
export function completeVoid(begun: VoidFacts, outcome: AcquirerOutcome, signing: Signing): CompletedVoid {
  const { state, isoResponseCode, reverse, answer, warnings } = judge(outcome, signing);
  const approveCode =
    state === "SUCCESS" ? answeredOr(answer.approveCode, begun.fields["approveCode"]) : answer.approveCode;
  const tc = answeredOr(answer.tc, begun.fields["tc"]);
  const fields = { ...begun.fields, status: state, isoResponseCode, approveCode, refId: answer.refId, tc };
  return { state, facts: { ...begun, fields }, reverse, warnings };
}
