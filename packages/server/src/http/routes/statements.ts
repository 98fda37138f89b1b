import { Readable } from "node:stream";
import { z } from "zod";
import { described } from "../../input/descriptions.ts";
import { dayIn } from "../../ipn/time.ts";
import { statementCsv, statementJson } from "../../ledger/statements.ts";
import type { PartnerSettings } from "../../partners/partner.ts";
import type { PartnerRoutes } from "../dependencies.ts";
import { operations, responses } from "../schemas/problem.ts";
import { batchPage, ownBooksQuery, settlementPage, statementSchema } from "../schemas/statement.ts";

const operation = operations("Statements");

/** The partner's own books: settled batches, settlements, and a statement of each day. */
export function statementRoutes({ app, parts: { statements }, callers }: PartnerRoutes): void {
  app.get(
    "/v1/batches",
    operation("listBatches", "List your settled batches", {
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
    operation("listSettlements", "List your Settlements, under way or ended", {
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
    operation("getStatement", "Get the statement of a day", {
      description:
        "Every transaction that was completed on a day in your time zone, with the id of its IPN, and totals by " +
        "currency. What changes later is a line of its own day: a Void, a Refund, a Reversal. A line never changes " +
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
      return reply
        .type(type)
        .header("vary", "accept")
        .send(Readable.from(text, { objectMode: false }));
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
