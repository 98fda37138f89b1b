import { z } from "zod";
import type { CompletionField, RequestField, TextField } from "../commands/field.ts";
import { descriptions } from "./descriptions.ts";

/** The shape check for a table of fields: exactly these, no others. The ledger checks the values. */
export function strictObjectOf(
  fields: readonly (RequestField | CompletionField)[],
  more: Record<string, z.ZodType> = {},
): z.ZodObject {
  return z.strictObject({ ...more, ...Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])) });
}

export function fieldSchema(field: RequestField | CompletionField): z.ZodType {
  const schema = requiredSchema(field);
  return field.required ? schema : schema.optional();
}

function requiredSchema(field: RequestField | CompletionField): z.ZodType {
  if (field.type === "string") return textSchema(field);
  const schema = plainSchema(field);
  descriptions.add(schema, { description: field.meaning });
  return schema;
}

function plainSchema(field: Exclude<RequestField | CompletionField, TextField>): z.ZodType {
  if (field.type === "flag") return z.boolean();
  const inner = strictObjectOf(field.fields);
  return field.type === "list" ? z.array(inner).max(field.maxItems) : inner;
}

function textSchema(field: TextField): z.ZodType {
  const text = z.string().max(field.maxLength);
  const { maxBytes } = field;
  const bounded =
    maxBytes === undefined
      ? text
      : text.refine((value) => value.length * 3 <= maxBytes || Buffer.byteLength(value) <= maxBytes, {
          message: `has over ${maxBytes} bytes`,
          params: { code: "too_long" },
        });
  descriptions.add(bounded, { description: field.meaning, ...(field.values && { enum: field.values }) });
  return bounded;
}
