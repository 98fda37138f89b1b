import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { shapeError } from "./issues.ts";

/** Validates each part of a request by its zod schema, and reports problems in our format. */
export const validate: FastifySchemaCompiler<unknown> = ({ schema, httpPart }) => {
  if (!(schema instanceof z.ZodType)) throw new TypeError("a route's schema is not zod's");
  return (value: unknown) => {
    // The framework passes null if there is no body.
    const result = schema.safeParse(httpPart === "body" && value === null ? undefined : value);
    return result.success ? { value: result.data } : { error: shapeError(result.error, value) };
  };
};

/** For a route whose documented body is checked elsewhere: by `shape` here, and then by the handler. */
export function bodyCheckedAs(shape: z.ZodType): FastifySchemaCompiler<unknown> {
  return (route) => validate(route.httpPart === "body" ? { ...route, schema: shape } : route);
}

/** Any JSON object, unchanged: an object schema would silently drop a key `__proto__`. */
export const bodyCheckedElsewhere = bodyCheckedAs(
  z.unknown().refine((body) => typeof body === "object" && body !== null && !Array.isArray(body)),
);
