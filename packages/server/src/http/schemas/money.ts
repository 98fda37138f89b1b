import { z } from "zod";
import { partnerIdText } from "./looked-up.ts";
import { component, described } from "./registry.ts";

export const moneyQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  state: described(z.string().max(64), "Only those in this state; of events, of this kind").optional(),
  after: described(z.uuid().optional(), "`next` of the page before"),
  limit: described(z.coerce.number().int().min(1).max(500).default(100), "Items of a page, at most 500"),
});

export const moneyItem = component(
  z.looseObject({ id: z.uuid(), partnerId: described(z.uuid().nullable(), "Null: of the service itself") }),
  "MoneyItem",
  "A transaction, batch, settlement, Reversal or event as the operator sees it",
);

export const moneyPage = component(
  z.object({ items: z.array(moneyItem), next: z.uuid().nullable() }),
  "MoneyPage",
  "The newest first",
);

export const chainSchema = z.object({ items: z.array(moneyItem) });

export const moneyParams = z.object({ id: z.uuid() });

export const reasonBody = component(
  z.strictObject({ reason: described(z.string().trim().min(1).max(1_000), "Kept with the event") }),
  "Reason",
  "Why the operator decided so",
);
