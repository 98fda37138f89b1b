import { z } from "zod";
import { redactItem } from "../../commands/reports/check-completion.ts";
import { newId } from "../../ids.ts";
import { bodyBounds } from "../../input/json.ts";
import { reportFrame, reportSchema } from "../../input/shapes.ts";
import { type ItemResult, reportItems } from "../../intake/report-items.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { bodyCheckedAs, operations, problemSchema, responses } from "../operation.ts";
import { operator } from "../policy.ts";
import { problemOf } from "../problems.ts";

const operation = operations("Completions");

const resultsSchema = z.object({
  results: z.array(
    z.object({
      externalId: z.string(),
      result: z.enum(["accepted", "duplicate", "conflict", "refused"]),
      transactionId: z.uuid().optional(),
      problem: problemSchema.optional(),
    }),
  ),
});

/**
 * POST /operator/v1/completions. The request is refused as a whole only if it is not a list of completions: items are
 * independent.
 */
export function completionRoutes(app: HttpApp, parts: HttpDependencies): void {
  app.post(
    "/operator/v1/completions",
    {
      bodyLimit: bodyBounds.ofReport.bytesMax,
      validatorCompiler: bodyCheckedAs(reportFrame),
      ...operation(operator.runs, "reportCompletions", "Report completed commands", {
        description:
          "At most 1,000 items and 8 MiB. Each item is independent: accepted, duplicate (by partner and externalId), " +
          "conflict (known with other content) or refused with its problem; the results come in the order of the " +
          "items. Only a body that is not a list of at most 1,000 completions is refused as a whole.",
        body: reportSchema,
        response: responses([200, resultsSchema, "A result for each item, in order"]),
      }),
    },
    async (request, reply) => {
      const items = (request.body as z.output<typeof reportFrame>).completions;
      const given = items.map((item) => ({ item }));
      const results = await reportItems(given, parts, (index) => ["completions", index]);
      return reply.type("application/json").send(JSON.stringify({ results: results.map(inAnswer) }));
    },
  );
}

function inAnswer({ externalId, result, transactionId, problem }: ItemResult) {
  return {
    externalId: redactItem(externalId),
    result,
    ...(transactionId !== undefined && { transactionId }),
    ...(problem !== undefined && { problem: problemOf(problem, newId()) }),
  };
}
