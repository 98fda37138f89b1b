import { cardCommands } from "@paybell/contract";
import type {
  AcquirerAnswer,
  BatchTotals,
  BatchUploadMessage,
  OriginalReference,
  SettlementMessage,
} from "../../acquirer/acquirer.ts";
import type { BatchEntry, DueSettlement } from "../settlements/store.ts";
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

/** The first message with its totals. */
export function settlementOf(
  { isUploaded }: Pick<DueSettlement, "isUploaded">,
  { facts: { fields } }: Transaction,
  totals: BatchTotals,
): SettlementMessage {
  const batchNo = fields["batchNo"] ?? "";
  return { command: "SETTLEMENT", ...headerOf(fields), batchNo, totals, afterUpload: isUploaded };
}

/** The totals as sent, and the acquirer's own, for the operator who investigates. */
export function countedByEach(totals: BatchTotals, { ownTotals, ownFigures }: Partial<AcquirerAnswer>) {
  return {
    totals: inText(totals),
    ...(ownTotals !== undefined && { acquirerTotals: ownTotals }),
    ...(ownFigures !== undefined && { acquirerFigures: inText(ownFigures) }),
  };
}

/** JSON has no large integers: amounts are texts. */
function inText(totals: Partial<BatchTotals>): Readonly<Record<string, unknown>> {
  const texts = Object.entries(totals).map(([name, value]) => [name, typeof value === "bigint" ? `${value}` : value]);
  return Object.fromEntries(texts);
}

/** The upload of one transaction. Its header is that of its settlement; number, time and repeat flag are its own. */
export function uploadOf(entry: BatchEntry, settlement: Transaction): BatchUploadMessage {
  const { id, command, fields, amountMinor, currency, voided } = entry;
  return {
    command: "BATCH_UPLOAD",
    ...headerOf(settlement.facts.fields),
    transactionId: id,
    batchNo: fields["batchNo"] ?? "",
    invoiceNo: fields["invoiceNo"] ?? "",
    amountMinor,
    currency,
    uploaded: referenceTo(command, fields),
    voided,
  };
}
