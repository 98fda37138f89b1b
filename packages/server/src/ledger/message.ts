import type { OriginalReference } from "../acquirer/acquirer.ts";
import type { Transaction } from "./transaction.ts";

type Fields = Readonly<Record<string, string>>;

/** What every message to the acquirer begins with. It comes from the frozen facts: so does a repeat's, anywhere. */
export function headerOf(fields: Fields) {
  return {
    transactionId: fields["id"] ?? "",
    tid: fields["tid"] ?? "",
    mid: fields["mid"] ?? "",
    traceNo: fields["traceNo"] ?? "",
    atMs: atMsOf(fields),
    repeat: false,
  };
}

/** How the acquirer knows a transaction again. */
export function referenceTo<Command extends Transaction["command"]>(command: Command, fields: Fields) {
  return {
    transactionId: fields["id"] ?? "",
    command,
    tid: fields["tid"] ?? "",
    traceNo: fields["traceNo"] ?? "",
    atMs: atMsOf(fields),
    approveCode: fields["approveCode"] ?? "",
    refId: fields["refId"] ?? "",
  };
}

const referables = ["SALE", "PREAUTH", "PREAUTH_COMPLETE", "REFUND", "VOID"] as const;

/** @throws Error for a command that moves no money: no other is ever referred to */
export function referable(command: Transaction["command"]): OriginalReference["command"] {
  const named = referables.find((one) => one === command);
  if (named !== undefined) return named;
  throw new Error(`A ${command} is never referred to.`);
}

/** Of a settlement the specification calls it transaction_time. */
function atMsOf(fields: Fields): number {
  return Date.parse(fields["transDateTime"] ?? fields["transaction_time"] ?? "");
}
