import type { FieldProblem } from "../errors.ts";
import type { TransactionStart } from "./card-facts.ts";
import { type AcquirerOutcome, judge } from "./outcome.ts";
import type { TerminalRequest } from "./requests/request.ts";
import type { TerminalSequence } from "./terminal.ts";

/** The ledger facts of a system command. It has no IPN (section 1), so no table defines its fields. */
export interface SystemFacts {
  readonly kind: "system";
  readonly fields: Readonly<Record<string, string>>;
}

export interface CompletedSystemCommand {
  readonly state: "SUCCESS" | "ERROR";
  readonly facts: SystemFacts;
  readonly warnings: readonly FieldProblem[];
}

/** The facts of a system command at INIT. `own` are its specific fields. */
export function beginSystemCommand(
  start: TransactionStart,
  asked: { readonly reqId: string; readonly tid: string; readonly mid: string; readonly traceNo: string },
  own: Readonly<Record<string, string>> = {},
): SystemFacts {
  const { reqId, tid, mid, traceNo } = asked;
  const transDateTime = new Date(start.atMs).toISOString();
  return {
    kind: "system",
    fields: { id: start.id, isoResponseCode: "", mid, reqId, status: "INIT", tid, traceNo, transDateTime, ...own },
  };
}

/** The facts of a Logon or a partner's own Batch Upload at INIT. An upload names the open batch, which stays open. */
export function beginTerminalCommand(
  { command, reqId, tid, mid }: TerminalRequest,
  { traceNo, batchNo }: Pick<TerminalSequence, "traceNo" | "batchNo">,
  start: TransactionStart,
): SystemFacts {
  return beginSystemCommand(start, { reqId, tid, mid, traceNo }, command === "BATCH_UPLOAD" ? { batchNo } : {});
}

/**
 * The same facts once the outcome is known: of a Batch Upload, the first one other than 00 among the batch's
 * transactions, or 00. Neither a Logon nor uploading again moves money, so nothing is reversed.
 */
export function completeSystemCommand(begun: SystemFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  // Its fields are not signed individually, so delimiters do not matter.
  const { state, isoResponseCode, warnings } = judge(outcome, { mode: "whole" });
  return { state, facts: { ...begun, fields: { ...begun.fields, status: state, isoResponseCode } }, warnings };
}
