import { z } from "zod";

/** The OpenAPI descriptions of schemas; those with an `id` become components. */
export const descriptions = z.registry<{
  id?: string;
  description?: string;
  enum?: readonly string[];
  format?: string;
}>();

/** A copy: the same schema elsewhere keeps its own description, or none. */
export function described<Schema extends z.ZodType>(schema: Schema, description: string): Schema {
  const copy = schema.clone();
  descriptions.add(copy, { description });
  return copy;
}

export function component<Schema extends z.ZodType>(schema: Schema, id: string, description: string): Schema {
  descriptions.add(schema, { id, description });
  return schema;
}

export function componentOf<Shape extends z.core.$ZodShape>(id: string, description: string, fields: Shape) {
  return component(z.object(fields), id, description);
}

/** The same for what a caller sends: no other fields are taken. */
export function bodyOf<Shape extends z.core.$ZodShape>(id: string, description: string, fields: Shape) {
  return component(z.strictObject(fields), id, description);
}
