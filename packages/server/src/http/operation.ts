import { Readable } from "node:stream";
import type { FastifyReply, FastifySchema, FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { badFields, type ErrorCode, errors } from "../errors.ts";
import { componentOf, described } from "../input/descriptions.ts";
import { shapeError, unsendableTexts } from "../input/issues.ts";
import type { Callers } from "./callers/partner-callers.ts";
import type { HttpApp, HttpDependencies } from "./dependencies.ts";
import type { RateLimits } from "./limits/rate-limits.ts";
import type { Policy } from "./policy.ts";
import { problemType } from "./problems.ts";

const fieldProblem = z.object({
  field: described(z.string(), "Path of the field, such as card.number or completions[3].amount"),
  code: described(z.string(), "Stable: branch on it"),
  message: z.string(),
});

export const problemSchema = componentOf("Problem", "An error, RFC 9457", {
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  code: described(z.string(), "Stable: branch on it"),
  detail: described(z.string(), "What was wrong this time"),
  remedy: described(z.string(), "What to do about it"),
  documentation: described(z.string(), "Where the guides explain the code, relative to the service's address"),
  instance: described(z.string(), "Names this occurrence; quote it to the operator"),
  errors: described(z.array(fieldProblem), "Every invalid field").optional(),
});

/** Codes that any route may answer. */
const everywhere = ["internal"] as const satisfies readonly ErrorCode[];
/** Codes that refuse a body. */
const bodyErrors = [
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
const errorsOf = {
  partner: [
    "unauthorized",
    "address_not_allowed",
    "partner_disabled",
    "scope_not_allowed",
    "too_many_requests",
    "unavailable",
  ],
  operator: ["unauthorized", "address_not_allowed", "role_not_allowed", "too_many_requests", "unavailable"],
  anybody: [],
} as const satisfies Record<Policy["callers"], readonly ErrorCode[]>;

type Responses = Record<number, { description: string; content: Record<string, { schema: z.ZodType }> }>;
type Success = readonly [status: number, schema: z.ZodType, description: string, type?: string];

/**
 * Routes under this tag in the documents: a route's policy, its `operationId`, its summary in one line, and its parts.
 * What any route with such callers, such a body, query or path may answer is added to its responses.
 */
export function operations(tag: string) {
  return <const Parts extends FastifySchema & { readonly response: Responses }>(
    policy: Policy,
    operationId: string,
    summary: string,
    parts: Parts,
  ) => {
    const { body, querystring, params, response } = parts;
    addProblems(response, [
      ...errorsOf[policy.callers],
      ...(body === undefined ? [] : bodyErrors),
      ...(querystring === undefined ? [] : queryErrors),
      ...(params === undefined ? [] : paramsErrors),
    ]);
    return { config: { policy }, schema: { operationId, tags: [tag], summary, ...parts } };
  };
}

/** A route's documented answers: its success, and for each status the codes that it may have. */
export function responses(success: Success, ...codes: readonly ErrorCode[]): Responses {
  const documented = answer(...success);
  addProblems(documented, [...codes, ...everywhere]);
  return documented;
}

/** One of a route's answers that are no problems. */
export function answer(...[status, schema, description, type = "application/json"]: Success): Responses {
  return { [status]: { description, content: { [type]: { schema } } } };
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

/** Aborted when the caller has disconnected, or has its answer. */
export function untilGone(reply: FastifyReply): AbortSignal {
  const gone = new AbortController();
  reply.raw.once("close", () => gone.abort());
  return gone.signal;
}

export interface PartnerRoutes {
  readonly app: HttpApp;
  readonly parts: HttpDependencies;
  readonly callers: Callers;
  readonly limits: RateLimits;
}

/**
 * Validates each part of a request by its zod schema, and reports problems in our format. Text that PostgreSQL cannot
 * store is refused here, whatever the schema says of the field.
 */
export const validate: FastifySchemaCompiler<unknown> = (route) => {
  const checked = checkedByShape(route);
  return (value: unknown) => {
    const result = checked(value);
    const [first, ...others] = "error" in result ? [] : unsendableTexts(value);
    return first === undefined ? result : { error: badFields([first, ...others]) };
  };
};

function checkedByShape({ schema, httpPart }: Parameters<FastifySchemaCompiler<unknown>>[0]) {
  if (!(schema instanceof z.ZodType)) throw new TypeError("a route's schema is not zod's");
  return (value: unknown) => {
    // The framework passes null if there is no body.
    const result = schema.safeParse(httpPart === "body" && value === null ? undefined : value);
    return result.success ? { value: result.data } : { error: shapeError(result.error, value) };
  };
}

/** For a route whose documented body is checked elsewhere: by `shape` here, and then, its texts too, by the handler. */
export function bodyCheckedAs(shape: z.ZodType): FastifySchemaCompiler<unknown> {
  return (route) => (route.httpPart === "body" ? checkedByShape({ ...route, schema: shape }) : validate(route));
}

/** Any JSON object, unchanged: an object schema would silently drop a key `__proto__`. */
export const bodyCheckedElsewhere = bodyCheckedAs(
  z.unknown().refine((body) => typeof body === "object" && body !== null && !Array.isArray(body)),
);

/** Of an answer that is a stream. */
export const pieceBytes = 64 * 1_024;

/** An export as an answer. How much of a piece was read is not known before all of it was. */
export function exported(text: AsyncIterable<string>): Readable {
  return Readable.from(piecesOf(text), { objectMode: false });
}

async function* piecesOf(text: AsyncIterable<string>): AsyncGenerator<Buffer> {
  for await (const page of text) {
    const bytes = Buffer.from(page);
    for (let from = 0; from < bytes.length; from += pieceBytes) yield bytes.subarray(from, from + pieceBytes);
  }
}
