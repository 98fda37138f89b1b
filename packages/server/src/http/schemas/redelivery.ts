import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { redeliveryProblems } from "../../notifications/notifications.ts";
import { moment, summarySchema } from "./notification.ts";
import { partnerIdText } from "./problem.ts";

export const redeliverBody = z
  .strictObject({
    to: described(
      z.enum(["original", "registered"]),
      "original, the default: the URL of its command, if it had one; registered: the registered one in any case",
    ).optional(),
  })
  .optional();

const filterFields = {
  state: z.enum(["pending", "accepted", "parked"]).optional(),
  from: moment.optional(),
  to: moment.optional(),
  ids: described(z.array(z.uuid()).min(1).max(500), "Only these, in whatever state").optional(),
  reason: described(z.string().max(64), "Of parked ones: why the last attempt failed").optional(),
};

function checked<Filter extends z.ZodObject>(filter: Filter): Filter {
  return filter.superRefine(
    (given, context) => {
      for (const { field, code, rule } of redeliveryProblems(given)) {
        context.addIssue({ code: "custom", path: field.split(".").slice(1), message: rule, params: { code } });
      }
    },
    // Also if a field has another shape: everything wrong is reported at once.
    { when: ({ value }) => typeof value === "object" && value !== null },
  );
}

const redeliveryFilter = checked(z.strictObject({ partner: partnerIdText.optional(), ...filterFields }));
const ownFilter = checked(z.strictObject(filterFields));

const redeliveryFields = {
  to: z.enum(["original", "registered"]).optional(),
  dryRun: described(z.boolean(), "Only counts").optional(),
  limit: described(
    z.int().min(1).max(10_000),
    "The maximum number, oldest first; to be able to stop, repeat until fewer match",
  ).optional(),
  redelivery: described(
    z.uuid(),
    "The `id` of an earlier answer: what this request makes due counts for its progress",
  ).optional(),
};
const whichOnes = "Which notifications; an empty filter selects all parked ones";

export const redeliveriesBody = bodyOf("Redeliveries", "Which notifications to send once more", {
  filter: described(redeliveryFilter, whichOnes),
  ...redeliveryFields,
});

export const ownRedeliveriesBody = bodyOf("OwnRedeliveries", "Which of your notifications to send once more", {
  filter: described(ownFilter, whichOnes),
  ...redeliveryFields,
});

export const redeliveryAnswer = componentOf("RedeliveredNotification", "A notification that is due", {
  ...summarySchema.shape,
  held: described(
    z.enum(["paused", "order"]).nullable(),
    "paused: the partner is; order: an earlier one of its chain is sent first; null: it is sent now",
  ),
});

const held = described(
  z.object({ paused: z.int(), order: z.int() }),
  "How many are still held back: by the pause of their partner, or by an earlier one of their chain",
);

export const redeliveredSchema = z.object({
  id: described(z.uuid().nullable(), "For its progress, kept for 30 days; null: nothing was made due"),
  matched: z.int(),
  redelivered: z.int(),
  held,
  ids: described(z.array(z.uuid()), "The first 100"),
});

export const redeliveryParams = z.object({ id: described(z.string(), "The redelivery's id, from its answer") });

export const redeliveryProgressSchema = componentOf("RedeliveryProgress", "What became of a redelivery of many", {
  id: z.uuid(),
  createdAt: z.iso.datetime(),
  redelivered: described(z.int(), "Notifications that it made due"),
  delivered: z.int(),
  pending: z.int(),
  parked: described(z.int(), "Parked again"),
  held,
});
