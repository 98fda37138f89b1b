import type { AcquirerOutcome } from "./outcome.ts";
import type { TerminalRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";
import {
  beginSystemCommand,
  type CompletedSystemCommand,
  completeSystemCommand,
  type SystemCommandFacts,
} from "./system.ts";

export type BatchUploadFacts = SystemCommandFacts;

/** The facts of a partner's own Batch Upload. `batchNo` is that of the open batch, which stays open. */
export function beginBatchUpload(
  request: TerminalRequest,
  terminal: { readonly traceNo: string; readonly batchNo: string },
  start: TransactionStart,
): BatchUploadFacts {
  const { reqId, tid, mid } = request;
  return beginSystemCommand(start, { reqId, tid, mid, traceNo: terminal.traceNo }, { batchNo: terminal.batchNo });
}

/**
 * `outcome` is the first one other than 00 among the batch's transactions, or 00 if the acquirer accepted them all.
 * Uploading again does no harm, so nothing is reversed.
 */
export function completeBatchUpload(begun: BatchUploadFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  return completeSystemCommand(begun, outcome);
}
