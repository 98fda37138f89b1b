import { notifiedCommands, statuses } from "@paybell/contract";
import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import { statementCsv, statementJson } from "../../ledger/statements.ts";
import type { PartnerSettings } from "../../partners/partner.ts";
import { dayIn } from "../../time.ts";
import { exported, operations, type PartnerRoutes, responses } from "../operation.ts";
import { limit } from "../parameters.ts";
import { partnerReads } from "../policy.ts";

const time = z.iso.datetime();
const guid = z.guid();
const amount = (meaning: string) => described(z.string(), `${meaning}, with the currency's decimals`);

/** A moment, or a day in the partner's zone. */
const dayOrMoment = z
  .union([z.iso.date(), z.iso.datetime({ offset: true })])
  .refine((text) => !(Date.parse(text) < 0), { message: "must be a day or a time since 1970" });

const ownBooksQuery = z.strictObject({
  tid: described(z.string().max(64), "Only those of this terminal").optional(),
  from: described(dayOrMoment, "Closed or completed then or later: ISO 8601 with a zone, or a day in yours").optional(),
  to: described(dayOrMoment, "Closed or completed earlier; a day is included").optional(),
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

const batchPage = componentOf("BatchPage", "The latest settlement first", {
  items: z.array(ownBatch),
  next: guid.nullable(),
});
const settlementPage = componentOf("SettlementPage", "The newest first", {
  items: z.array(ownSettlement),
  next: guid.nullable(),
});

const line = componentOf("StatementLine", "What happened to your money: one line", {
  kind: described(
    z.enum(["transaction", "reversal", "stands"]),
    "reversal: on this day a Reversal undid this transaction, which had succeeded; a switch may have reported it. " +
      "stands: on this day the operator decided that it stands, because the acquirer refuses to undo it",
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
    "What it adds to your balance: -150000 for a Void of 150000, 0 for a PreAuth or a failure; empty without amount. A Void " +
      "without amount takes back that of its original",
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

const statementSchema = componentOf("Statement", "A day of your books", {
  date: z.iso.date(),
  timeZone: described(z.string(), "Yours: the day is one of this zone"),
  from: time,
  to: described(time, "The end of the day"),
  isComplete: described(z.boolean(), "false: the day is not over, and lines may follow"),
  lines: described(z.array(line), "By transaction, in the order of their commands; what took longer is at the end"),
  totals: z.array(totals),
});

const operation = operations("Statements");

/** The partner's own books: settled batches, settlements, and a statement of each day. */
export function statementRoutes({ app, parts: { statements }, callers }: PartnerRoutes): void {
  app.get(
    "/v1/batches",
    operation(partnerReads, "listBatches", "List your settled batches", {
      querystring: ownBooksQuery,
      response: responses([200, batchPage, "A page"]),
    }),
    async (request) => {
      const { id, settings } = callers.partner(request);
      return await statements.batches(id, searchOf(request.query, settings));
    },
  );
  app.get(
    "/v1/settlements",
    operation(partnerReads, "listSettlements", "List your Settlements, under way or ended", {
      querystring: ownBooksQuery,
      response: responses([200, settlementPage, "A page"]),
    }),
    async (request) => {
      const { id, settings } = callers.partner(request);
      return await statements.settlements(id, searchOf(request.query, settings));
    },
  );
  const found = responses([200, statementSchema, "The statement"], "invalid_value", "not_found");
  Object.assign(found[200]?.content ?? {}, { "text/csv": { schema: z.string() } });
  app.get(
    "/v1/statements/:date",
    operation(partnerReads, "getStatement", "Get the statement of a day", {
      description:
        "Every transaction that was completed on a day in your time zone, with the id of its IPN, and totals by " +
        "currency. What changes later is a line of its own day: a Void, a Refund, a Reversal, or that it stands. A line never changes " +
        "once its day is over. With `Accept: text/csv` it is CSV, and its last rows are the totals.",
      params: z.object({ date: described(z.iso.date(), "Such as 2026-11-21") }),
      response: found,
    }),
    async (request, reply) => {
      const statement = statements.statement(callers.partner(request), request.params.date);
      const isCsv = prefersCsv(request.headers.accept);
      const text = isCsv ? statementCsv(statement) : statementJson(statement);
      // Charset is for spreadsheets; JSON has none.
      const type = isCsv ? "text/csv; charset=utf-8" : "application/json";
      return reply.type(type).header("vary", "accept").send(exported(text));
    },
  );
}

/** The form that is named first counts. */
function prefersCsv(accept = ""): boolean {
  const [first] = accept.toLowerCase().match(/text\/csv|application\/json/) ?? [];
  return first === "text/csv";
}

/** A day counts from its beginning, and to its end. */
function searchOf({ from, to, ...query }: z.infer<typeof ownBooksQuery>, { timeZone }: PartnerSettings) {
  const at = (text: string, ofDay: 0 | 1) => (text.includes("T") ? Date.parse(text) : dayIn(timeZone, text)[ofDay]);
  return {
    ...query,
    fromMs: from === undefined ? undefined : at(from, 0),
    toMs: to === undefined ? undefined : at(to, 1),
  };
}
