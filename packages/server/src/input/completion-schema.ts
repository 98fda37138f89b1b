import { type Command, commands } from "@paybell/contract";
import { z } from "zod";
import { type CompletionRequest, completionFields, completionKind } from "../commands/request.ts";
import { component, described } from "./descriptions.ts";
import { strictObjectOf } from "./field-schema.ts";

const completionsMax = 1_000;

const shapes = {
  card: component(strictObjectOf(completionFields.card), "CardCompletion", "A completed command but a Settlement"),
  settlement: component(strictObjectOf(completionFields.settlement), "SettlementCompletion", "A completed Settlement"),
};

/** The shape that a reported item must have: that of its command's table. */
export function completionSchema(item: unknown): z.ZodType<CompletionRequest> {
  const command = typeof item === "object" && item !== null && "command" in item ? item.command : undefined;
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
