import { z } from "zod";
import { redeliveryProblems } from "../../notifications/notifications.ts";
import { lookedUpText, partnerIdText } from "./looked-up.ts";
import { moment } from "./notification.ts";
import { component, described } from "./registry.ts";

export const redeliverBody = z
  .strictObject({
    to: described(z.enum(["original", "registered"]), "Which callback URL; default: original").optional(),
  })
  .optional();

const redeliveryFilter = z
  .strictObject({
    partner: partnerIdText.optional(),
    state: z.enum(["accepted", "parked"]).optional(),
    from: moment.optional(),
    to: moment.optional(),
    reason: described(lookedUpText(64), "Of parked ones: why the last attempt failed").optional(),
  })
  .superRefine(
    (filter, context) => {
      for (const { field, code, rule } of redeliveryProblems(filter)) {
        context.addIssue({ code: "custom", path: field.split(".").slice(1), message: rule, params: { code } });
      }
    },
    // Also if a field has another shape: everything wrong is reported at once.
    { when: ({ value }) => typeof value === "object" && value !== null },
  );

export const redeliveriesBody = component(
  z.strictObject({
    filter: described(redeliveryFilter, "Which notifications; an empty filter names them all"),
    to: z.enum(["original", "registered"]).optional(),
    dryRun: described(z.boolean(), "Only counts").optional(),
    limit: described(
      z.int().min(1).max(10_000),
      "At most so many, the oldest first: to show progress, ask again until fewer match",
    ).optional(),
  }),
  "Redeliveries",
  "Which notifications to send once more",
);

export const redeliveredSchema = z.object({
  matched: z.int(),
  redelivered: z.int(),
  ids: described(z.array(z.uuid()), "The first 100"),
});
