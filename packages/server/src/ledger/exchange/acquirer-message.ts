import { cardCommands } from "@paybell/contract";
import type { OriginalReference } from "../../acquirer/acquirer.ts";
import type { Transaction } from "../store.ts";

type Fields = Readonly<Record<string, string>>;

/**
 * The header of every message to the acquirer. It comes from the frozen facts, so a repetition by any instance is
 * identical.
 */
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

/** The elements by which the acquirer identifies a transaction. */
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

/** @throws Error for a command that moves no money, because no message refers to such a command */
export function referable(command: Transaction["command"]): OriginalReference["command"] {
  const named = cardCommands.find((one) => one === command);
  if (named !== undefined) return named;
  throw new Error(`A ${command} is never referred to.`);
}

/** The specification calls it transaction_time in a settlement. */
function atMsOf(fields: Fields): number {
  return Date.parse(fields["transDateTime"] ?? fields["transaction_time"] ?? "");
}
