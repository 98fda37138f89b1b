import type { FieldProblem } from "../errors.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { TransactionStart } from "./sale.ts";

/** A system command's side of the ledger. No IPN is sent for it (section 1), so no table rules its fields. */
export interface SystemCommandFacts {
  readonly kind: "system";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedSystemCommand {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SystemCommandFacts;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a system command at INIT. `own` are the fields that it alone has. */
export function beginSystemCommand(
  start: TransactionStart,
  asked: { readonly reqId: string; readonly tid: string; readonly mid: string; readonly traceNo: string },
  own: Readonly<Record<string, string>> = {},
): SystemCommandFacts {
  const { reqId, tid, mid, traceNo } = asked;
  const transDateTime = new Date(start.atMs).toISOString();
  return {
    kind: "system",
    fields: { id: start.id, isoResponseCode: "", mid, reqId, status: "INIT", tid, traceNo, transDateTime, ...own },
  };
}

export function completeSystemCommand(begun: SystemCommandFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  // Nothing of it is signed by field, so no delimiter in it can be odd.
  const { state, isoResponseCode, warnings } = judge(outcome, { mode: "whole" });
  return { state, facts: { ...begun, fields: { ...begun.fields, status: state, isoResponseCode } }, warnings };
}
