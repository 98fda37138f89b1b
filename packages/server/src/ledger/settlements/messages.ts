import type { AcquirerAnswer, BatchTotals, BatchUploadMessage, SettlementMessage } from "../../acquirer/acquirer.ts";
import { headerOf, referenceTo } from "../exchange/acquirer-message.ts";
import type { Transaction } from "../store.ts";
import type { BatchEntry, DueSettlement } from "./store.ts";

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
