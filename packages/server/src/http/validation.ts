import type { FastifySchemaCompiler } from "fastify";
import { z } from "zod";
import { badFields } from "../errors.ts";
import { shapeError, unsendableTexts } from "../input/issues.ts";

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
