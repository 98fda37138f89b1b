import { type Command, commands } from "@paybell/contract";
import { z } from "zod";
import { type CompletionRequest, completionFields, completionKind } from "../commands/reports/completion.ts";
import type { CompletionField, RequestField, TextField } from "../commands/requests/request.ts";
import { type CommandRequest, reqIdField, requestFields } from "../commands/requests/request.ts";
import { component, described, descriptions } from "./descriptions.ts";

/** The shape check for a table of fields: exactly these, no others. The ledger checks the values. */
function strictObjectOf(
  fields: readonly (RequestField | CompletionField)[],
  more: Record<string, z.ZodType> = {},
): z.ZodObject {
  return z.strictObject({ ...more, ...Object.fromEntries(fields.map((field) => [field.name, fieldSchema(field)])) });
}

function fieldSchema(field: RequestField | CompletionField): z.ZodType {
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

type CommandObject = z.ZodObject<{ command: z.ZodLiteral<Command> }>;

const objects = commands.map((command) =>
  component(
    strictObjectOf(requestFields[command], { command: z.literal(command), reqId: fieldSchema(reqIdField) }),
    `Command_${command}`,
    `The command ${command}`,
  ),
) as unknown as [CommandObject, ...CommandObject[]];

/** The shape of a command, from the tables of fields: exactly one of the commands, with exactly its fields. */
// The tables are CommandRequest's source too; zod's own inference cannot see through them.
export const commandSchema = component(
  z.discriminatedUnion("command", objects),
  "Command",
  "A command, told apart by `command`",
) as unknown as z.ZodType<CommandRequest>;

const everyField: ReadonlyMap<string, RequestField> = new Map(
  Object.values(requestFields).flatMap((fields) => fields.map((field) => [field.name, optional(field)])),
);

/** The shape of an unknown command: every field that any command has. */
export const anyCommandSchema = strictObjectOf([...everyField.values()], {
  command: z.unknown(),
  reqId: fieldSchema(reqIdField),
});

function optional(field: RequestField): RequestField {
  if (field.type !== "object") return { ...field, required: false };
  return { ...field, required: false, fields: field.fields.map((inner) => ({ ...inner, required: false })) };
}

const completionsMax = 1_000;

const shapes = {
  card: component(strictObjectOf(completionFields.card), "CardCompletion", "A completed command but a Settlement"),
  settlement: component(strictObjectOf(completionFields.settlement), "SettlementCompletion", "A completed Settlement"),
};

/** The shape that a reported item must have: that of its command's table. */
export function completionSchema(item: unknown): z.ZodType<CompletionRequest> {
  const command = isObject(item) ? item["command"] : undefined;
  const kind = commands.includes(command as Command) ? completionKind(command as Command) : "card";
  return shapes[kind] as unknown as z.ZodType<CompletionRequest>;
}

/** The specification calls one field of the list reqID in section 2.2 and reqId in 2.3: both are accepted. */
export function withReqIds(item: unknown): unknown {
  const list = typeof item === "object" && item !== null && "settlementList" in item ? item.settlementList : undefined;
  return Array.isArray(list) ? { ...(item as object), settlementList: list.map(withReqId) } : item;
}

function withReqId(entry: unknown): unknown {
  if (typeof entry !== "object" || entry === null || !("reqID" in entry) || "reqId" in entry) return entry;
  const { reqID: reqId, ...others } = entry;
  return { ...others, reqId };
}

/** The report as documented. */
export const reportSchema = component(
  z.strictObject({
    completions: described(z.array(z.union([shapes.card, shapes.settlement])).max(completionsMax), "In order"),
  }),
  "Report",
  "Completed commands, as the operator's switch reports them",
);

/** The part of the report that is checked as a whole: items are independent. */
export const reportFrame = z.strictObject({ completions: z.array(z.unknown()).max(completionsMax) });

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
