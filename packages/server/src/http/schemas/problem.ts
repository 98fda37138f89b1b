import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { type ErrorCode, errors } from "../../errors.ts";
import { component, described } from "../../input/descriptions.ts";
import { problemType } from "../problem.ts";

const fieldProblem = z.object({
  field: described(z.string(), "Path of the field, such as card.number or completions[3].amount"),
  code: described(z.string(), "Stable: branch on it"),
  message: z.string(),
});

export const problemSchema = component(
  z.object({
    type: z.string(),
    title: z.string(),
    status: z.number().int(),
    code: described(z.string(), "Stable: branch on it"),
    detail: described(z.string(), "What was wrong this time"),
    remedy: described(z.string(), "What to do about it"),
    documentation: described(z.string(), "Where the guides explain the code, relative to the service's address"),
    instance: described(z.string(), "Names this occurrence; quote it to the operator"),
    errors: described(z.array(fieldProblem), "Every invalid field").optional(),
  }),
  "Problem",
  "An error, RFC 9457",
);

/** Codes that any route may answer. */
const everywhere = ["internal"] as const satisfies readonly ErrorCode[];
/** Codes that refuse a body. */
export const bodyErrors = [
  "invalid_json",
  "invalid_request",
  "unknown_field",
  "missing_field",
  "wrong_type",
  "invalid_value",
  "too_long",
  "invalid_text",
  "body_too_large",
  "unsupported_media_type",
] as const satisfies readonly ErrorCode[];
const queryErrors = [
  "unknown_field",
  "missing_field",
  "invalid_value",
  "invalid_text",
  "wrong_type",
  "too_long",
] as const;
const paramsErrors = ["invalid_text"] as const;
const partnerErrors = [
  "unauthorized",
  "address_not_allowed",
  "partner_disabled",
  "scope_not_allowed",
  "too_many_requests",
  "unavailable",
] as const;
const operatorErrors = [
  "unauthorized",
  "address_not_allowed",
  "role_not_allowed",
  "too_many_requests",
  "unavailable",
] as const;

type Responses = Record<number, { description: string; content: Record<string, { schema: z.ZodType }> }>;

/** A route's documented answers: its successes, and for each status the codes that it may have. */
export function responses(
  successes: Readonly<Record<number, { schema: z.ZodType; description: string; type?: string }>>,
  ...codes: readonly ErrorCode[]
): Responses {
  const documented: Responses = {};
  for (const [status, { schema, description, type }] of Object.entries(successes)) {
    documented[Number(status)] = { description, content: { [type ?? "application/json"]: { schema } } };
  }
  addProblems(documented, [...codes, ...everywhere]);
  return documented;
}

/** Adds to each route of a scope what any route with such callers, such a body, query or path may answer. */
export function documentProblems(scope: FastifyInstance, callers: "partner" | "operator"): void {
  const ofCallers = callers === "partner" ? partnerErrors : operatorErrors;
  scope.addHook("onRoute", ({ schema }) => {
    const ofBody = schema?.body === undefined ? [] : bodyErrors;
    const ofQuery = schema?.querystring === undefined ? [] : queryErrors;
    const ofParams = schema?.params === undefined ? [] : paramsErrors;
    if (schema?.response !== undefined)
      addProblems(schema.response as Responses, [...ofCallers, ...ofBody, ...ofQuery, ...ofParams]);
  });
}

function addProblems(documented: Responses, codes: readonly ErrorCode[]): void {
  for (const code of codes) {
    const { status, title } = errors[code];
    const line = `\`${code}\`: ${title}.`;
    const lines = documented[status]?.description.split("\n") ?? [];
    if (lines.includes(line)) continue;
    documented[status] = {
      description: [...lines, line].join("\n"),
      content: { [problemType]: { schema: problemSchema } },
    };
  }
}
