import type { FieldProblem } from "../errors.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { TransactionStart } from "./sale.ts";

/** The ledger facts of a system command. It has no IPN (section 1), so no table defines its fields. */
export interface SystemCommandFacts {
  readonly kind: "system";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedSystemCommand {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SystemCommandFacts;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a system command at INIT. `own` are its specific fields. */
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
  // Its fields are not signed individually, so delimiters do not matter.
  const { state, isoResponseCode, warnings } = judge(outcome, { mode: "whole" });
  return { state, facts: { ...begun, fields: { ...begun.fields, status: state, isoResponseCode } }, warnings };
}
