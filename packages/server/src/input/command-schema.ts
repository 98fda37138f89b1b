import { type Command, commands } from "@paybell/contract";
import { z } from "zod";
import type { RequestField } from "../commands/field.ts";
import { type CommandRequest, reqIdField, requestFields } from "../commands/request.ts";
import { component } from "./descriptions.ts";
import { fieldSchema, strictObjectOf } from "./field-schema.ts";

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
