import { z } from "zod";
import { partnerIdText } from "./looked-up.ts";
import { component, described } from "./registry.ts";

export const moneyQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  state: described(z.string().max(64), "Only those in this state; of events, of this kind").optional(),
  after: described(z.uuid().optional(), "`next` of the page before"),
  limit: described(z.coerce.number().int().min(1).max(500).default(100), "Items of a page, at most 500"),
});

const shared = { id: z.uuid(), partnerId: described(z.uuid().nullable(), "Null: of the service itself") };
const time = z.iso.datetime();
const minor = (meaning: string) => described(z.string(), `${meaning}, in the currency's smallest unit`);

const transactionFields = {
  ...shared,
  origin: described(z.enum(["command", "switch"]), "A command of the partner, or reported by a switch"),
  command: z.string(),
  state: z.enum(["INIT", "SUCCESS", "ERROR"]),
  tid: z.string().nullable(),
  batchNo: z.string().nullable(),
  reqId: z.string().nullable(),
  externalId: described(z.string().nullable(), "The switch's own id of what it reported"),
  originalId: described(z.uuid().nullable(), "The transaction that it changes"),
  amount: z.string().nullable(),
  currency: z.string().nullable(),
  isoResponseCode: z.string().nullable(),
  approveCode: z.string().nullable(),
  refId: z.string().nullable(),
  settlementDate: described(z.string().nullable(), "Of a settlement, where the acquirer named it"),
  acquirer: described(z.string(), "The acquirer that it went to; empty: that of the settings"),
  reversal: described(z.enum(["pending", "done", "parked"]).nullable(), "Of its own Reversal"),
  createdAt: time,
  completedAt: time.nullable(),
};

const transactionRecord = component(
  z.object(transactionFields),
  "TransactionRecord",
  "A transaction as the operator sees it",
);

const linkedTransaction = component(
  z.object({
    ...transactionFields,
    merchantTransId: z.string().nullable(),
    notificationId: z.uuid().nullable(),
    batchId: z.uuid().nullable(),
    successorCommand: described(z.string().nullable(), "What holds it, or ended it"),
    successorState: z.enum(["in_flight", "in_doubt", "done"]).nullable(),
  }),
  "LinkedTransaction",
  "A transaction of a chain",
);

const batchRecord = component(
  z.object({
    ...shared,
    tid: z.string(),
    mid: z.string(),
    batchNo: z.string(),
    currency: described(z.string().nullable(), "Null: it was empty"),
    settlementId: z.uuid(),
    saleQuantity: z.int(),
    saleTotalMinor: minor("Sales and Completes"),
    voidQuantity: z.int(),
    voidTotalMinor: minor("Voids"),
    refundQuantity: z.int(),
    refundTotalMinor: minor("Refunds"),
    closedAt: time,
  }),
  "BatchRecord",
  "A closed batch, as this service counts it",
);

const settlementRecord = component(
  z.object({
    ...shared,
    kind: z.enum(["SETTLEMENT", "BATCH_UPLOAD"]),
    tid: z.string(),
    batchId: z.uuid(),
    state: z.enum(["waiting", "sending", "uploading"]),
    isUploaded: described(z.boolean(), "The acquirer's totals differed, and the batch was uploaded"),
    tries: z.int(),
    dueAt: time,
    createdAt: time,
  }),
  "SettlementRecord",
  "A settlement under way",
);

const reversalRecord = component(
  z.object({
    ...shared,
    tid: z.string(),
    state: z.enum(["PENDING", "DONE", "PARKED"]),
    requestedBy: described(z.uuid().nullable(), "The partner's REVERSAL that waits for it"),
    responseCode: z.string().nullable(),
    tries: z.int(),
    dueAt: time,
    createdAt: time,
  }),
  "ReversalRecord",
  "A Reversal; its id is its transaction's",
);

const eventRecord = component(
  z.object({
    ...shared,
    kind: z.string(),
    subjectId: described(z.uuid().nullable(), "What it is about: a notification, a transaction, an endpoint"),
    detail: described(z.record(z.string(), z.unknown()), "By its kind"),
    at: time,
  }),
  "EventRecord",
  "Something that an operator should know",
);

/** The answer for each kind of money item in the operator API. */
export const moneyRecords = {
  transactions: { noun: "transaction", one: transactionRecord },
  batches: { noun: "batch", one: batchRecord },
  settlements: { noun: "settlement", one: settlementRecord },
  reversals: { noun: "reversal", one: reversalRecord },
  events: { noun: "event", one: eventRecord },
} as const;

export const chainSchema = z.object({ items: z.array(linkedTransaction) });

export const moneyParams = z.object({ id: z.uuid() });

export const reasonBody = component(
  z.strictObject({ reason: described(z.string().trim().min(1).max(1_000), "Kept with the event") }),
  "Reason",
  "Why the operator decided so",
);
