import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { shapeError } from "./issues.ts";

/** Judges each part of a request by its zod schema; what is wrong is told in our words. */
export const validate: FastifySchemaCompiler<unknown> = ({ schema, httpPart }) => {
  if (!(schema instanceof z.ZodType)) throw new TypeError("a route's schema is not zod's");
  return (value: unknown) => {
    // The framework hands over null where there is no body.
    const result = schema.safeParse(httpPart === "body" && value === null ? undefined : value);
    return result.success ? { value: result.data } : { error: shapeError(result.error, value) };
  };
};

/** For a route whose documented body is judged otherwise: by `shape` here, and then by who takes it. */
export function bodyCheckedAs(shape: z.ZodType): FastifySchemaCompiler<unknown> {
  return (route) => validate(route.httpPart === "body" ? { ...route, schema: shape } : route);
}

/** Any JSON object, as it came: a schema of an object would drop a key `__proto__` without a word. */
export const bodyCheckedElsewhere = bodyCheckedAs(
  z.unknown().refine((body) => typeof body === "object" && body !== null && !Array.isArray(body)),
);
