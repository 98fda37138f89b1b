import { z } from "zod";
import { badFields, ServiceError } from "../../errors.ts";
import { newId } from "../../ids.ts";
import type { RefusedItem, ReportResult } from "../../ledger/reports.ts";
import { everyProblemOfCompletion } from "../every-problem.ts";
import { shapeError } from "../issues.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { type Problem, problemOf } from "../problem.ts";
import { completionSchema, reportFrame, reportSchema, withReqIds } from "../schemas/completion.ts";
import { problemSchema, responses } from "../schemas/problem.ts";
import { bodyCheckedAs } from "../validation.ts";

const bodyBytesMax = 8 * 1024 * 1024;

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
export function completionRoutes(app: HttpApp, parts: HttpParts): void {
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
          "At most 1,000 items and 8 MiB. Each item stands alone: accepted, duplicate (by partnerId and externalId), " +
          "conflict (known with other content) or refused with its problem; the results come in the order of the " +
          "items. Only a body that is no list of at most 1,000 completions is refused as a whole.",
        body: reportSchema,
        response: responses({ 200: { schema: resultsSchema, description: "A result for each item, in order" } }),
      },
    },
    async (request, reply) => {
      const items = (request.body as z.output<typeof reportFrame>).completions;
      const results = await reportEach(items, parts);
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

async function reportEach(given: readonly unknown[], parts: HttpParts): Promise<ItemResult[]> {
  const items = given.map(withReqIds);
  const read = items.map((item) => completionSchema(item).safeParse(item));
  const wellShaped = read.flatMap(({ data }) => (data === undefined ? [] : [data]));
  const reported = wellShaped.length === 0 ? [] : await parts.reports.report(wellShaped);
  if (reported.length !== wellShaped.length)
    throw new Error("the ledger answered another number of items than it was given");
  const answers = reported.values();
  const results = read.map(({ error }, index) => {
    const item = items[index];
    if (error === undefined) return inItem(index, answers.next().value);
    const problem = shapeError(error, item, ["completions", index]);
    return { externalId: externalIdOf(item), result: "refused" as const, problem };
  });
  const all = await Promise.all(
    results.map((result, index) => told(result, items[index], `completions[${index}].`, parts)),
  );
  await parts.reports.keepRefused(all.flatMap((result, index) => refusedItem(result, given[index])));
  return all;
}

/** An item that could not be made durable now is reported again, and not recorded as refused. */
function refusedItem({ result, externalId, problem }: ItemResult, item: unknown): RefusedItem[] {
  if (result !== "refused" || problem === undefined || problem.code === "unavailable") return [];
  const problems = problem.errors?.map(({ field, code }) => ({ field, code })) ?? [{ field: "", code: problem.code }];
  return [{ item, externalId, problems }];
}

/** The ledger names an item's fields by themselves, the caller knows them by their place in the report. */
function inItem(index: number, answer: ReportResult | undefined): ReportResult {
  if (answer === undefined) throw new Error("the ledger left an item out");
  const { problem } = answer;
  if (problem === undefined) return answer;
  const fields = problem.fields.map((one) => ({ ...one, field: `completions[${index}].${one.field}` }));
  return { ...answer, problem: new ServiceError(problem.code, problem.message, { fields }) };
}

function externalIdOf(item: unknown): string {
  const given = typeof item === "object" && item !== null && "externalId" in item ? item.externalId : undefined;
  return typeof given === "string" ? given.slice(0, 128) : "";
}

async function told(answer: ReportResult, item: unknown, path: string, parts: HttpParts): Promise<ItemResult> {
  const { externalId, result, transactionId, problem } = answer;
  if (problem === undefined) return { externalId, result, ...(transactionId !== undefined && { transactionId }) };
  const every = result === "refused" ? await withEveryField(problem, item, path, parts) : problem;
  return {
    externalId,
    result,
    ...(transactionId !== undefined && { transactionId }),
    problem: problemOf(every, newId()),
  };
}

/** If the shape was invalid, or the partner unknown, the rules were not checked. */
async function withEveryField(
  problem: ServiceError,
  item: unknown,
  path: string,
  parts: HttpParts,
): Promise<ServiceError> {
  if (problem.fields.length === 0) return problem;
  const [first, ...others] = await everyProblemOfCompletion({ known: problem.fields, item, path }, parts);
  return first === undefined ? problem : badFields([first, ...others]);
}
