import type { CompletionField, RequestField, TextField } from "../commands/field.ts";

type Values = Readonly<Record<string, unknown>>;

/**
 * The fields of a body of the wrong shape that the rules can still check: those of the table that have their type. A
 * required one without it is empty, any other is left out.
 */
export function wellTyped(fields: readonly (RequestField | CompletionField)[], body: unknown): Values {
  const given: Values = isObject(body) ? body : {};
  const kept: [string, unknown][] = [];
  for (const field of fields) {
    const value = Object.hasOwn(given, field.name) ? given[field.name] : undefined;
    if (field.type === "string") keepText(field, value, kept);
    else if (field.type === "flag")
      kept.push(...(typeof value === "boolean" ? [[field.name, value] as [string, boolean]] : []));
    else if (field.type === "object") kept.push([field.name, wellTyped(field.fields, value)]);
    else if (Array.isArray(value)) kept.push([field.name, value.map((entry) => wellTyped(field.fields, entry))]);
  }
  return Object.fromEntries(kept);
}

function keepText(field: TextField, value: unknown, kept: [string, unknown][]): void {
  if (typeof value === "string") kept.push([field.name, value]);
  else if (field.required) kept.push([field.name, ""]);
}

function isObject(value: unknown): value is Values {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
