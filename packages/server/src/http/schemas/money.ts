import { z } from "zod";
import { eventKinds } from "../../events.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { moment } from "./notification.ts";
import { limit, partnerIdText } from "./problem.ts";

// A switch may assign ids to transactions: UUIDs of any form, which zod calls `guid`.
const searched = {
  partner: described(partnerIdText, "A partner's id").optional(),
  after: described(z.guid().optional(), "`next` of the previous page"),
  limit,
};

const transactionStates = ["INIT", "SUCCESS", "ERROR"] as const;
const settlementSteps = ["waiting", "sending", "uploading"] as const;
const reversalStates = ["PENDING", "DONE", "PARKED"] as const;

function stateOf<const Values extends readonly string[]>(values: Values, meaning = "Only those in this state") {
  return described(z.enum(values), meaning).optional();
}

const transactionsQuery = z.strictObject({
  ...searched,
  state: stateOf(transactionStates),
  batch: described(z.guid().optional(), "Only those of this batch"),
  acquirer: described(
    z.string(),
    "Only those that went to this acquirer; `default`: to that of the settings",
  ).optional(),
});
const batchesQuery = z.strictObject({ ...searched, state: stateOf(["CLOSED"]) });
const settlementsQuery = z.strictObject({ ...searched, state: stateOf(settlementSteps) });
const reversalsQuery = z.strictObject({ ...searched, state: stateOf(reversalStates) });
const eventsQuery = z.strictObject({
  ...searched,
  state: stateOf(eventKinds, "Only those of this kind"),
  subject: described(z.guid().optional(), "Only those about this notification, transaction or endpoint"),
});
export const merchantsQuery = z.strictObject({
  partner: searched.partner,
  from: described(moment.clone(), "Created then or later"),
  to: described(moment.clone(), "Created earlier; 31 days after `from` at most"),
});

const shared = { id: z.guid(), partnerId: described(z.guid().nullable(), "Null: of the service itself") };
const time = z.iso.datetime();
const minor = (meaning: string) => described(z.string(), `${meaning}, in the currency's smallest unit`);

const acquirer = described(z.string(), "The acquirer that it went to; empty: that of the settings");

const transactionFields = {
  ...shared,
  origin: described(z.enum(["command", "switch"]), "A command of the partner, or reported by a switch"),
  command: z.string(),
  state: z.enum(transactionStates),
  tid: z.string().nullable(),
  batchNo: z.string().nullable(),
  reqId: z.string().nullable(),
  externalId: described(z.string().nullable(), "The id that the switch reported"),
  originalId: described(z.guid().nullable(), "The transaction that it changes"),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  isoResponseCode: z.string().nullable(),
  approveCode: z.string().nullable(),
  refId: z.string().nullable(),
  settlementDate: described(z.string().nullable(), "Of a settlement, where the acquirer named it"),
  acquirer,
  reversal: described(z.enum(["pending", "done", "parked"]).nullable(), "Of its own Reversal"),
  createdAt: time,
  completedAt: time.nullable(),
};

const transactionRecord = componentOf("TransactionRecord", "A transaction as the operator sees it", transactionFields);

const linkedTransaction = componentOf("LinkedTransaction", "A transaction of a chain", {
  ...transactionFields,
  merchantTransId: z.string().nullable(),
  notificationId: z.guid().nullable(),
  batchId: z.guid().nullable(),
  successorCommand: described(z.string().nullable(), "The command that holds it, or ended it"),
  successorState: z.enum(["in_flight", "in_doubt", "done"]).nullable(),
});

const batchRecord = componentOf("BatchRecord", "A closed batch, as this service counts it", {
  ...shared,
  tid: z.string(),
  mid: z.string(),
  batchNo: z.string(),
  currency: described(z.string().nullable(), "Null if the batch was empty"),
  settlementId: z.guid(),
  saleQuantity: z.int(),
  saleTotalMinor: minor("Sales and Completes"),
  voidQuantity: z.int(),
  voidTotalMinor: minor("Voids"),
  refundQuantity: z.int(),
  refundTotalMinor: minor("Refunds"),
  closedAt: time,
});

const settlementFields = {
  ...shared,
  kind: z.enum(["SETTLEMENT", "BATCH_UPLOAD"]),
  tid: z.string(),
  createdAt: time,
  acquirer,
};
const isUploaded = described(z.boolean(), "The acquirer's totals differed, and the batch was uploaded");

const settlementRecord = componentOf("SettlementRecord", "A settlement in progress", {
  ...settlementFields,
  batchId: z.guid(),
  state: z.enum(settlementSteps),
  isUploaded,
  tries: z.int(),
  dueAt: time,
});

const shownTotals = componentOf("ShownTotals", "The totals of one side. Null: not known", {
  saleQuantity: z.int().nullable(),
  saleTotalMinor: minor("Sales and Completes").nullable(),
  voidQuantity: z.int().nullable(),
  voidTotalMinor: minor("Voids").nullable(),
  refundQuantity: z.int().nullable(),
  refundTotalMinor: minor("Refunds").nullable(),
});

export const settlementDetail = componentOf(
  "SettlementDetail",
  "A settlement, under way or ended, with the totals of both sides",
  {
    ...settlementFields,
    origin: transactionFields.origin,
    mid: z.string().nullable(),
    batchNo: z.string().nullable(),
    batchId: described(
      z.guid().nullable(),
      "The batch that it closes, or has closed; null if it was refused, or reported by a switch",
    ),
    state: z.enum([...settlementSteps, "settled", "refused"]),
    isUploaded: isUploaded.nullable(),
    tries: described(z.int().nullable(), "Of the present step; null once it has ended"),
    dueAt: time.nullable(),
    completedAt: time.nullable(),
    isoResponseCode: z.string().nullable(),
    refId: z.string().nullable(),
    settlementDate: transactionFields.settlementDate,
    notificationId: z.guid().nullable(),
    currency: described(z.string().nullable(), "Null if the batch is empty"),
    totals: described(shownTotals, "As this service sent them, or counts them so far"),
    acquirerTotals: described(shownTotals.nullable(), "The acquirer's own; null: it sent none that could be read"),
    acquirerFields: described(z.record(z.string(), z.string()).nullable(), "The same by field, as it sent them"),
    listed: described(z.int(), "Transactions in its settlementList"),
  },
);

const reversalRecord = componentOf("ReversalRecord", "A Reversal; its id is its transaction's", {
  ...shared,
  tid: z.string(),
  state: z.enum(reversalStates),
  requestedBy: described(z.guid().nullable(), "The partner's REVERSAL that waits for it"),
  responseCode: z.string().nullable(),
  acquirer,
  tries: z.int(),
  dueAt: time,
  createdAt: time,
});

const eventRecord = componentOf("EventRecord", "Something that an operator should know", {
  ...shared,
  kind: z.string(),
  subjectId: described(z.guid().nullable(), "What it is about: a notification, a transaction, an endpoint"),
  detail: described(z.record(z.string(), z.unknown()), "Depends on the kind"),
  at: time,
});

/** The query and the answer for each kind of money item in the operator API. */
export const moneyRecords = {
  transactions: { noun: "transaction", one: transactionRecord, query: transactionsQuery },
  batches: { noun: "batch", one: batchRecord, query: batchesQuery },
  settlements: { noun: "settlement", one: settlementRecord, query: settlementsQuery },
  reversals: { noun: "reversal", one: reversalRecord, query: reversalsQuery },
  events: { noun: "event", one: eventRecord, query: eventsQuery },
} as const;

const merchantTotals = componentOf("MerchantTotals", "What a merchant sold in a period, of one currency", {
  partnerId: z.guid(),
  mid: z.string(),
  merchantName: z.string(),
  currency: z.string(),
  saleQuantity: described(z.int(), "Sales and Completes that were approved, also those that were voided since"),
  saleTotalMinor: minor("Of these"),
  voidQuantity: z.int(),
  voidTotalMinor: minor("Voids"),
  refundQuantity: z.int(),
  refundTotalMinor: minor("Refunds"),
  reversedQuantity: described(z.int(), "Undone at the acquirer, and in none of the totals"),
  declinedQuantity: z.int(),
});

export const merchantsSchema = componentOf("MerchantTotalsList", "By partner, merchant and currency", {
  items: z.array(merchantTotals),
});

export const chainSchema = z.object({ items: z.array(linkedTransaction) });

export const moneyParams = z.object({ id: z.guid() });

const reason = z.string().trim().min(1).max(1_000);

export const retryBody = bodyOf("ReversalRetry", "Why the Reversal is sent again", {
  reason: described(reason, "Kept with the event; required if the Reversal is done").optional(),
});

export const reasonBody = bodyOf("Reason", "Why the operator decided so", {
  reason: described(reason, "Kept with the event"),
});
