import { z } from "zod";
import type { CompletionRequest } from "../../commands/request.ts";
import { PaybellError } from "../../errors.ts";
import { newId } from "../../ids.ts";
import type { ReportResult } from "../../ledger/reports.ts";
import { shapeError } from "../issues.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { type Problem, problemOf } from "../problem.ts";
import { completionSchema, reportFrame, reportSchema } from "../schemas/completion.ts";
import { bodyErrors, operatorErrors, problemSchema, responses } from "../schemas/problem.ts";
import { bodyCheckedAs } from "../validation.ts";

const bodyBytesMax = 8 * 1024 * 1024;

const resultsSchema = z.object({
  results: z.array(
    z.object({
      externalId: z.string(),
      result: z.enum(["accepted", "duplicate", "refused"]),
      transactionId: z.uuid().optional(),
      problem: problemSchema.optional(),
    }),
  ),
});

/** POST /operator/v1/completions. Only what is no list of completions is refused as a whole: each item stands alone. */
export function completionRoutes(app: HttpApp, { reports }: HttpParts): void {
  app.post(
    "/operator/v1/completions",
    {
      bodyLimit: bodyBytesMax,
      validatorCompiler: bodyCheckedAs(reportFrame),
      schema: {
        operationId: "reportCompletions",
        tags: ["Completions"],
        summary: "Report completed commands",
        description:
          "At most 1,000 items and 8 MiB. Each item stands alone: accepted, duplicate (by partnerId and " +
          "externalId) or refused with its problem; the results come in the order of the items. Only a body that " +
          "is no list of at most 1,000 completions is refused as a whole.",
        body: reportSchema,
        response: responses(
          { 200: { schema: resultsSchema, description: "A result for each item, in order" } },
          ...operatorErrors,
          ...bodyErrors,
        ),
      },
    },
    async (request, reply) => {
      const items = (request.body as z.output<typeof reportFrame>).completions;
      const results = await reportEach(items, reports);
      return reply.type("application/json").send(JSON.stringify({ results }));
    },
  );
}

interface ItemResult {
  readonly externalId: string;
  readonly result: ReportResult["result"];
  readonly transactionId?: string;
  readonly problem?: Problem;
}

async function reportEach(items: readonly unknown[], reports: HttpParts["reports"]): Promise<ItemResult[]> {
  const read = items.map(readItem);
  const wellShaped = read.flatMap((item) => ("completion" in item ? [item.completion] : []));
  const reported = wellShaped.length === 0 ? [] : await reports.report(wellShaped);
  if (reported.length !== wellShaped.length)
    throw new Error("the ledger answered another number of items than it was given");
  const answers = reported.values();
  return read.map((item, index) => ("refused" in item ? item.refused : resultOf(answers.next().value, index)));
}

type ReadItem = { readonly completion: CompletionRequest } | { readonly refused: ItemResult };

function readItem(item: unknown, index: number): ReadItem {
  const shape = completionSchema(item).safeParse(item);
  if (shape.success) return { completion: shape.data };
  return { refused: refusal(externalIdOf(item), shapeError(shape.error, item, ["completions", index])) };
}

function externalIdOf(item: unknown): string {
  const given = typeof item === "object" && item !== null && "externalId" in item ? item.externalId : undefined;
  return typeof given === "string" ? given.slice(0, 128) : "";
}

function refusal(externalId: string, problem: PaybellError): ItemResult {
  return { externalId, result: "refused", problem: problemOf(problem, newId()) };
}

function resultOf(answer: ReportResult | undefined, index: number): ItemResult {
  if (answer === undefined) throw new Error("the ledger left an item out");
  const { externalId, result, transactionId, problem } = answer;
  if (problem !== undefined) return refusal(externalId, inItem(index, problem));
  return { externalId, result, ...(transactionId !== undefined && { transactionId }) };
}

/** The ledger names an item's fields by themselves, the caller knows them by their place in the report. */
function inItem(index: number, { code, message, fields }: PaybellError): PaybellError {
  return new PaybellError(code, message, {
    fields: fields.map((problem) => ({ ...problem, field: `completions[${index}].${problem.field}` })),
  });
}
