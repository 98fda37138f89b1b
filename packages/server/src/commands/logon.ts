import type { FieldProblem } from "../errors.ts";
import { judge, type Outcome } from "./outcome.ts";
import type { TerminalRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";

/** A system command's side of the ledger. No IPN is sent for it (section 1), so no table rules its fields. */
export interface LogonFacts {
  readonly kind: "system";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedLogon {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: LogonFacts;
  readonly warnings: readonly FieldProblem[];
}

export function beginLogon(
  request: TerminalRequest,
  terminal: { readonly traceNo: string },
  start: TransactionStart,
): LogonFacts {
  return {
    kind: "system",
    fields: {
      id: start.id,
      isoResponseCode: "",
      mid: request.mid,
      reqId: request.reqId,
      status: "INIT",
      tid: request.tid,
      traceNo: terminal.traceNo,
      transDateTime: new Date(start.atMs).toISOString(),
    },
  };
}

/** A Logon moves no money: whatever its outcome, nothing is reversed. */
export function completeLogon(begun: LogonFacts, outcome: Outcome): CompletedLogon {
  const { state, isoResponseCode, warnings } = judge(outcome, { mode: "whole" });
  return { state, facts: { ...begun, fields: { ...begun.fields, status: state, isoResponseCode } }, warnings };
}
