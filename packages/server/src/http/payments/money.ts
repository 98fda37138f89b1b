import { z } from "zod";
import { type ReversalState, reversalStates } from "../../commands/states.ts";
import type { ErrorCode } from "../../errors.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { type MoneyItem, moneyKinds } from "../../ledger/money-operations.ts";
import { eventKinds, type NewEvent, withoutReport } from "../../telemetry/events.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses, untilGone } from "../operation.ts";
import { limit, moment, partnerIdText } from "../parameters.ts";
import { operator, viewer } from "../policy.ts";

const operation = operations("Money");

// A switch may assign ids to transactions: UUIDs of any form, which zod calls `guid`.
const searched = {
  partner: described(partnerIdText, "A partner's id").optional(),
  after: described(z.guid().optional(), "`next` of the previous page"),
  limit,
};

const transactionStates = ["INIT", "SUCCESS", "ERROR"] as const;
const reversalRowStates = [
  "PENDING",
  "DONE",
  "PARKED",
  "STANDS",
] as const satisfies readonly Uppercase<ReversalState>[];
const settlementSteps = ["waiting", "sending", "uploading"] as const;

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
const reversalsQuery = z.strictObject({ ...searched, state: stateOf(reversalRowStates) });
const eventsQuery = z.strictObject({
  ...searched,
  state: stateOf(eventKinds, "Only those of this kind"),
  subject: described(z.guid().optional(), "Only those about this notification, transaction or endpoint"),
});
const merchantsQuery = z.strictObject({
  partner: searched.partner,
  from: described(moment, "Created then or later"),
  to: described(moment, "Created earlier; 31 days after `from` at most"),
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
  reversal: described(z.enum(reversalStates).nullable(), "Of its own Reversal; done too if a switch reported one"),
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

const settlementDetail = componentOf(
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
    acceptedLate: described(
      z.enum(["closed", "in_doubt"]).nullable(),
      "The acquirer accepted it after it was aborted. closed: the terminal's next Settlement reports its batch; " +
        "in_doubt: the batch has changed since, and waits for you",
    ),
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
  command: described(z.string().nullable(), "Of its transaction, as are the four below"),
  reqId: transactionFields.reqId,
  merchantTransId: z.string().nullable(),
  amount: transactionFields.amount,
  currency: transactionFields.currency,
  tid: z.string(),
  state: z.enum(reversalRowStates),
  requestedBy: described(z.guid().nullable(), "The partner's REVERSAL that waits for it"),
  responseCode: described(
    z.string().nullable(),
    "The acquirer's last answer. While it is PENDING, a 25 stays, which decides what a later 94 means",
  ),
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
  saleQuantity: described(
    z.int(),
    "Sales and Completes that were approved or reported, also those that were voided since",
  ),
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

const moneyParams = z.object({ id: z.guid() });

const reason = z.string().trim().min(1).max(1_000);

const retryBody = bodyOf("ReversalRetry", "Why the Reversal is sent again", {
  reason: described(reason, "Kept with the event; required if the Reversal is done").optional(),
});

export const reasonBody = bodyOf("Reason", "Why the operator decided so", {
  reason: described(reason, "Kept with the event"),
});

/** Transactions, Reversals and settlements for the operator, with the decisions about those in doubt. */
export function operatorMoneyRoutes(
  app: HttpApp,
  { money }: HttpDependencies,
  callers: Pick<OperatorCallers, "mayReadContent">,
): void {
  for (const kind of moneyKinds) {
    const { noun, one, query } = moneyRecords[kind];
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    const page = componentOf(`${name}Page`, "Newest first", { items: z.array(one), next: z.guid().nullable() });
    app.get(
      `/operator/v1/${kind}`,
      operation(
        viewer.reads,
        `search${name}`,
        kind === "settlements" ? "List settlements in progress" : `Search ${kind}`,
        {
          querystring: query,
          response: responses([200, page, "A page"], "unknown_partner"),
        },
      ),
      async (request) => {
        const { items, next } = await money.search(kind, request.query);
        return { items: items.map(withoutContent), next };
      },
    );
    if (kind === "settlements") continue;
    app.get(
      `/operator/v1/${kind}/:id`,
      operation(
        kind === "events" ? viewer.looks("input") : viewer.reads,
        `inspect${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
        `See one ${noun}`,
        {
          ...(kind === "events" && {
            description:
              "The role `operator` sees the report that a switch sent (`detail.item`), which others and lists do not " +
              "show. The audit records each look.",
          }),
          params: moneyParams,
          response: responses([200, one, "Its current state"], "not_found"),
        },
      ),
      async (request) => {
        const found = await money.find(kind, request.params.id);
        return callers.mayReadContent(request) ? found : withoutContent(found);
      },
    );
  }
  app.get(
    "/operator/v1/settlements/:id",
    operation(
      viewer.reads,
      "inspectSettlement",
      "See one settlement, under way or ended, with the totals of both sides",
      {
        params: moneyParams,
        response: responses([200, settlementDetail, "Its current state"], "not_found"),
      },
    ),
    async (request) => await money.settlement(request.params.id),
  );
  app.get(
    "/operator/v1/merchants",
    operation(viewer.reads, "getMerchantTotals", "See what each merchant sold in a period", {
      querystring: merchantsQuery,
      response: responses([200, merchantsSchema, "As it stands"], "unknown_partner"),
    }),
    async ({ query: { partner, from, to } }) => ({
      items: [...(await money.merchants({ partner, fromMs: Date.parse(from), toMs: Date.parse(to) }))],
    }),
  );
  app.get(
    "/operator/v1/transactions/:id/chain",
    operation(viewer.reads, "getChain", "See a transaction with those that it changes, and those that change it", {
      params: moneyParams,
      response: responses([200, chainSchema, "In order"], "not_found"),
    }),
    async (request) => ({ items: await money.chain(request.params.id) }),
  );
  app.post(
    "/operator/v1/reversals/:id/retry",
    operation(
      operator.acts("input"),
      "retryReversal",
      "Send a parked Reversal again, or with a reason one that is done",
      {
        params: moneyParams,
        body: retryBody.optional(),
        response: decided(moneyRecords.reversals.one, "reversal_not_parked", "settlement_in_progress", "no_acquirer"),
      },
    ),
    async (request) => await money.retryReversal(request.params.id, request.body?.reason),
  );
  app.post(
    "/operator/v1/reversals/:id/resolve",
    operation(
      operator.acts("input"),
      "resolveReversal",
      "End a parked Reversal manually: the acquirer confirmed that nothing is charged",
      {
        params: moneyParams,
        body: reasonBody,
        response: decided(moneyRecords.reversals.one, "reversal_not_parked", "settlement_in_progress"),
      },
    ),
    async (request) => await money.resolveReversal(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/reversals/:id/stands",
    operation(
      operator.acts("input"),
      "letReversalStand",
      "End a parked Reversal manually: the acquirer has the transaction in its books, and refuses for good to undo it",
      {
        description:
          "The transaction counts as a success from now on: in its open batch, and for a Void or Refund. Its IPN stays " +
          "as it was: if it said ERROR, the statement of this day has the transaction as a line of the kind `stands`, " +
          "and you tell the partner.",
        params: moneyParams,
        body: reasonBody,
        response: decided(
          moneyRecords.reversals.one,
          "reversal_not_parked",
          "settlement_in_progress",
          "batch_currency",
          "other_acquirer",
        ),
      },
    ),
    async (request) => await money.letStand(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/settlements/:id/abort",
    operation(
      operator.acts("input"),
      "abortSettlement",
      "End a settlement that the acquirer does not answer: its batch is open again",
      {
        params: moneyParams,
        body: reasonBody,
        response: decided(moneyRecords.transactions.one, "settlement_ended"),
      },
    ),
    async (request) => await money.abortSettlement(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/settlements/:id/resolve",
    operation(
      operator.acts("input"),
      "resolveSettlement",
      "Reopen a batch that the acquirer settled after the abort, and that has changed since",
      {
        params: moneyParams,
        body: reasonBody,
        response: decided(moneyRecords.transactions.one, "settlement_not_in_doubt"),
      },
    ),
    async (request) => await money.resolveSettlement(request.params.id, request.body.reason),
  );
}

/** The answers to a person's decision. */
function decided(one: z.ZodType, ...refusals: readonly ErrorCode[]) {
  return responses([200, one, "Its current state"], "not_found", ...refusals, "card_number_in_clear");
}

/** An event may hold what a switch reported, and so what a cardholder bought. */
function withoutContent(item: MoneyItem): MoneyItem {
  const { detail } = item;
  if (typeof detail !== "object" || detail === null) return item;
  return { ...item, detail: withoutReport(detail as NewEvent["detail"]) };
}

const query = z.strictObject({
  after: described(
    z.string().max(16_384),
    "`next` of the previous page; `now`: only later ones; left out: from the beginning of what is kept",
  ).optional(),
  limit,
  wait: described(
    z.coerce.number().int().min(1).max(30),
    "Seconds to wait for an event while there is none",
  ).optional(),
});

const page = componentOf("EventFeed", "Events in the order in which they were committed", {
  items: z.array(moneyRecords.events.one),
  next: described(z.string(), "For `after`, also after the last page"),
});

/** The operator's events for a system that reads all of them. */
export function operatorFeedRoutes(
  app: HttpApp,
  { feed }: HttpDependencies,
  callers: Pick<OperatorCallers, "authenticate">,
): void {
  app.get(
    "/operator/v1/feed",
    operation(viewer.reads, "readFeed", "Read every event, the oldest first", {
      description:
        "For a SIEM. Go on from `next`: nothing is skipped, because no event appears later behind one that was " +
        "read. With `wait` an empty page is answered as soon as there is an event, or when the time is over.",
      querystring: query,
      response: responses(
        [200, page, "A page; empty at the end"],
        "too_many_requests",
        "invalid_cursor",
        "cursor_from_another_history",
        "cursor_expired",
      ),
    }),
    async (request, reply) => {
      const { after, limit, wait } = request.query;
      if (wait === undefined) return await feed.read({ after, limit });
      const read = await feed.read({ after, limit }, { durationMs: wait * 1_000, signal: untilGone(reply) });
      // The caller may have lost access during the wait.
      await callers.authenticate(request);
      return read;
    },
  );
}
