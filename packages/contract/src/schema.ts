import type { IpnKind } from "./columns.ts";
import { type Field, type FieldFormat, ipnFields, settlementListFields } from "./fields.ts";

/** An unknown value is the empty string, so every pattern accepts it. */
const patterns: Record<FieldFormat, string> = {
  uuid: "^([0-9a-fA-F]{8}-[0-9a-fA-F]{4}-4[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12})?$",
  yyyymmddhhmmss: "^([0-9]{14})?$",
  "yyyymmddhhmmss-or-iso8601": "^([0-9]{14}|[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z)?$",
  amount: "^(-?(0|[1-9][0-9]*)(\\.[0-9]+)?)?$",
  count: "^(-?(0|[1-9][0-9]*))?$",
};

/** Every IPN has these two. Any other listed value may be unknown and hence empty. */
const neverEmpty: ReadonlySet<string> = new Set(["status", "transaction_type"]);

function scalarSchema(field: Field): object {
  const { values, format } = field;
  return {
    type: "string",
    description: field.meaning,
    ...(values && { enum: neverEmpty.has(field.name) ? values : ["", ...values] }),
    ...(format && { pattern: patterns[format] }),
  };
}

function objectSchema(fields: readonly Field[]): object {
  const properties = fields.map((field) => [
    field.name,
    field.type === "list"
      ? { type: "array", description: field.meaning, items: objectSchema(settlementListFields) }
      : scalarSchema(field),
  ]);
  return { type: "object", properties: Object.fromEntries(properties), required: fields.map((field) => field.name) };
}

/**
 * JSON Schema 2020-12 of an opened IPN under the tables' names: sections 2.2 and 2.3. Unknown fields are allowed, so
 * that a later version of the contract passes this version's validation.
 */
export function ipnJsonSchema(kind: IpnKind): object {
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: kind === "card" ? "Card transaction IPN" : "Settlement IPN",
    ...objectSchema(ipnFields(kind)),
  };
}
