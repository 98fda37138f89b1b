import type { AcquirerOutcome } from "./outcome.ts";
import type { TerminalRequest } from "./request.ts";
import type { TransactionStart } from "./sale.ts";
import {
  beginSystemCommand,
  type CompletedSystemCommand,
  completeSystemCommand,
  type SystemCommandFacts,
} from "./system.ts";

export type LogonFacts = SystemCommandFacts;

export function beginLogon(
  request: TerminalRequest,
  terminal: { readonly traceNo: string },
  start: TransactionStart,
): LogonFacts {
  const { reqId, tid, mid } = request;
  return beginSystemCommand(start, { reqId, tid, mid, traceNo: terminal.traceNo });
}

/** A Logon moves no money, so it is never reversed. */
export function completeLogon(begun: LogonFacts, outcome: AcquirerOutcome): CompletedSystemCommand {
  return completeSystemCommand(begun, outcome);
}
