import { Readable } from "node:stream";
import { z } from "zod";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import { historyFormats, historyText, readDay } from "../../notifications/history-export.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, partnerIdText, responses } from "../schemas/problem.ts";

const operation = operations("Deliveries");

const query = z.strictObject({
  format: described(z.enum(historyFormats).default("json-lines"), "One line for each notification"),
  partner: described(partnerIdText, "Only this partner's").optional(),
});

/** History for a system that keeps it longer. */
export function operatorHistoryRoutes(app: HttpApp, { history, clock }: HttpDependencies): void {
  app.get(
    "/operator/v1/history/:day",
    operation("exportHistory", "Export a day of history: notifications with their attempts", {
      description:
        "Days are in UTC, and are exported once they are over. Card data are masked, as they are stored. JSON " +
        "lines have the whole content and every attempt, CSV the fields by which people search and the last " +
        "attempt. The audit records the export.",
      params: z.object({ day: described(z.iso.date(), "Such as 2026-11-21") }),
      querystring: query,
      response: responses([200, z.string(), "The day", "application/jsonl"], "invalid_value", "not_found"),
    }),
    async ({ params, query: { format, partner } }, reply) => {
      const partnerId = partner === undefined ? undefined : readId<"partner">(partner);
      const pages = await readDay(history, params.day, clock.nowMs(), partnerId);
      const type = format === "csv" ? "text/csv; charset=utf-8" : "application/jsonl";
      return reply.type(type).send(Readable.from(historyText(pages, format), { objectMode: false }));
    },
  );
}
