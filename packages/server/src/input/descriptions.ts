import { z } from "zod";

/** The OpenAPI descriptions of schemas; those with an `id` become components. */
export const descriptions = z.registry<{
  id?: string;
  description?: string;
  enum?: readonly string[];
  format?: string;
}>();

export function described<Schema extends z.ZodType>(schema: Schema, description: string): Schema {
  descriptions.add(schema, { description });
  return schema;
}

export function component<Schema extends z.ZodType>(schema: Schema, id: string, description: string): Schema {
  descriptions.add(schema, { id, description });
  return schema;
}
