import { notifiedCommands, statuses } from "@paybell/contract";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import { limit } from "./problem.ts";

const time = z.iso.datetime();
const guid = z.guid();
const amount = (meaning: string) => described(z.string(), `${meaning}, with the currency's decimals`);

/** A moment, or a day in the partner's zone. */
const dayOrMoment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })])
  .refine((text) => !(Date.parse(text) < 0), { message: "must be a day or a time since 1970" });

export const ownBooksQuery = z.strictObject({
  tid: described(z.string().max(64), "Only those of this terminal").optional(),
  from: described(
    dayOrMoment.clone(),
    "Closed or completed then or later: ISO 8601 with a zone, or a day in yours",
  ).optional(),
  to: described(dayOrMoment.clone(), "Closed or completed earlier; a day is included").optional(),
  after: described(guid.optional(), "`next` of the previous page"),
  limit,
});

const ownBatch = componentOf("Batch", "A settled batch", {
  id: guid,
  tid: z.string(),
  mid: z.string(),
  batchNo: z.string(),
  currency: described(z.string().nullable(), "Null if the batch was empty"),
  settlementId: described(guid, "The Settlement that closed it"),
  notificationId: described(guid.nullable(), "Of the Settlement's IPN"),
  saleQuantity: described(z.int(), "Sales and Completes, voided ones included"),
  saleTotalAmount: amount("Of these"),
  voidQuantity: z.int(),
  voidTotalAmount: amount("Of the Voids"),
  refundQuantity: z.int(),
  refundTotalAmount: amount("Of the Refunds"),
  netAmount: amount("Sales less Voids and Refunds"),
  closedAt: time,
});

const ownSettlement = componentOf("Settlement", "A Settlement, under way or ended", {
  id: guid,
  status: described(z.enum(statuses), "INIT while it is under way"),
  isoResponseCode: z.string(),
  reqId: z.string(),
  merchantTransId: z.string(),
  tid: z.string(),
  mid: z.string(),
  batchNo: z.string(),
  currency: described(z.string().nullable(), "Null if the batch was empty, or a switch reported it without one"),
  saleQuantity: described(z.string(), "As in its IPN, like the next three"),
  saleTotalAmount: z.string(),
  voidQuantity: z.string(),
  voidTotalAmount: z.string(),
  refId: described(z.string(), "The acquirer's reference"),
  settlementDate: described(z.string(), "The day on which the money moves, as the acquirer gave it (MMDD)"),
  listed: described(z.int(), "Transactions in its settlementList"),
  notificationId: described(guid.nullable(), "Of its IPN"),
  createdAt: time,
  completedAt: time.nullable(),
});

export const batchPage = componentOf("BatchPage", "The latest settlement first", {
  items: z.array(ownBatch),
  next: guid.nullable(),
});
export const settlementPage = componentOf("SettlementPage", "The newest first", {
  items: z.array(ownSettlement),
  next: guid.nullable(),
});

const line = componentOf("StatementLine", "What happened to your money: one line", {
  kind: described(
    z.enum(["transaction", "reversal"]),
    "reversal: on this day a Reversal undid this transaction, which had succeeded",
  ),
  at: described(time, "When it was completed, or undone"),
  id: described(guid, "The transaction's"),
  notificationId: described(guid.nullable(), "Of its IPN; null: none, or not yet"),
  command: z.enum(notifiedCommands),
  status: z.enum(["SUCCESS", "ERROR"]),
  isoResponseCode: z.string(),
  currency: z.string(),
  amount: described(z.string(), "As in its IPN; empty for a Settlement"),
  movement: described(
    z.string(),
    "What it adds to your balance: -150000 for a Void of 150000, 0 for a PreAuth or a failure; empty without amount",
  ),
  reqId: z.string(),
  merchantTransId: z.string(),
  tid: z.string(),
  mid: z.string(),
  batchNo: z.string(),
  traceNo: z.string(),
  refId: z.string(),
  approveCode: z.string(),
  originalId: described(z.string(), "The transaction that it changes; empty: none"),
});

const totals = componentOf("StatementTotals", "The totals of one currency", {
  currency: z.string(),
  saleQuantity: described(z.int(), "Sales and Completes of this day"),
  saleTotalAmount: amount("Of these"),
  voidQuantity: described(z.int(), "Voids of Sales and Completes"),
  voidTotalAmount: amount("Of these"),
  refundQuantity: z.int(),
  refundTotalAmount: amount("Of the Refunds"),
  reversedQuantity: described(z.int(), "Sales, Completes and Refunds that were undone on this day"),
  reversedTotalAmount: amount("Of these"),
  netAmount: amount("The sum of all movements"),
});

export const statementSchema = componentOf("Statement", "A day of your books", {
  date: z.iso.date(),
  timeZone: described(z.string(), "Yours: the day is one of this zone"),
  from: time,
  to: described(time, "The end of the day"),
  isComplete: described(z.boolean(), "false: the day is not over, and lines may follow"),
  lines: described(z.array(line), "By transaction, in the order of their commands; what took longer is at the end"),
  totals: z.array(totals),
});
