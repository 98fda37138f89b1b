import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { redeliveryProblems } from "../../notifications/notifications.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, type PartnerRoutes, responses } from "../operation.ts";
import { moment, ofPartner, partnerIdText, partnerParams, requirePartner } from "../parameters.ts";
import { operator, partnerManages, partnerReads, viewer } from "../policy.ts";
import {
  ownParams,
  params,
  reasonsOfPartner,
  requireNotificationId,
  summaryForPartner,
  summarySchema,
} from "./notifications.ts";

const operation = operations("Deliveries");
const ownOperation = operations("Notifications");

const redeliverBody = z
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
    "The maximum number, oldest first. Of parked ones, to be able to stop: repeat until fewer match. Others match again",
  ).optional(),
  redelivery: described(
    z.uuid(),
    "The `id` of an earlier answer: what this request makes due counts for its progress",
  ).optional(),
};
const whichOnes = "Which notifications; an empty filter selects all parked ones";

const redeliveriesBody = bodyOf("Redeliveries", "Which notifications to send once more", {
  filter: described(redeliveryFilter, whichOnes),
  ...redeliveryFields,
});

const ownRedeliveriesBody = bodyOf("OwnRedeliveries", "Which of your notifications to send once more", {
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
  selection: described(
    z.object({
      commands: described(z.record(z.string(), z.int()), "How many of each command"),
      oldestAt: z.iso.datetime().nullable(),
      urls: described(z.array(z.string().nullable()), "Their own URLs, the first five; null: the registered one"),
    }),
    "Of what matched",
  ),
});

const redeliveryParams = z.object({ id: described(z.string(), "The redelivery's id, from its answer") });

const redeliveryProgressSchema = componentOf("RedeliveryProgress", "What became of a redelivery of many", {
  id: z.uuid(),
  createdAt: z.iso.datetime(),
  redelivered: described(z.int(), "Notifications that it made due"),
  delivered: z.int(),
  pending: z.int(),
  failed: described(z.int(), "Of the pending ones, those that have failed again since: their schedule tries them"),
  due: described(z.int(), "Of the pending ones, those that are sent now"),
  nextAttemptAt: described(
    z.iso.datetime().nullable(),
    "When the next of the others is tried; null: it takes a person, or an earlier one of its chain",
  ),
  parked: described(z.int(), "Parked again"),
  held,
});

/** The partner's redeliveries of its own notifications, and its test of the callback URL. */
export function redeliveryRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.post(
    "/v1/notifications/:id/redeliver",
    ownOperation(partnerManages.acts("input"), "redeliverNotification", "Redeliver a notification", {
      params: ownParams,
      body: redeliverBody,
      response: responses([202, redeliveryAnswer, "It is due; `held` says what still holds it back"], "not_found"),
    }),
    async (request, reply) => {
      const { id } = callers.partner(request);
      const to = request.body?.to ?? "original";
      const summary = await parts.notifications.redeliver(id, requireNotificationId(request.params.id), to);
      return reply.code(202).send({ ...summaryForPartner(summary), held: summary.held });
    },
  );
  app.post(
    "/v1/redeliveries",
    ownOperation(partnerManages.acts("input"), "redeliverOwn", "Redeliver many of your notifications", {
      description: "Pending ones are due now, at their step of the schedule; others begin a whole new one.",
      body: ownRedeliveriesBody,
      response: responses([200, redeliveredSchema, "How many matched, and how many are due again"], "invalid_text"),
    }),
    async (request) => {
      const { filter, to = "original", ...options } = request.body;
      const { reason, ...others } = filter;
      const own = { ...others, reason: reasonsOfPartner(reason), partnerId: callers.partner(request).id };
      return await parts.notifications.redeliverMany(own, { to, ...options });
    },
  );
  app.get(
    "/v1/redeliveries/:id",
    ownOperation(partnerReads, "getOwnRedelivery", "See how much of a redelivery is delivered", {
      params: redeliveryParams,
      response: responses([200, redeliveryProgressSchema, "As of now"], "not_found"),
    }),
    async (request) => await parts.notifications.redelivery(request.params.id, callers.partner(request).id),
  );
  app.post(
    "/v1/test-notification",
    ownOperation(partnerManages.acts("input"), "sendTestNotification", "Send a test notification", {
      description: "A sample Sale to the registered callback URL. It belongs to no transaction.",
      response: responses([202, summarySchema, "It is due"], "no_callback_url"),
    }),
    async (request, reply) => reply.code(202).send(await parts.notifications.sendTest(callers.partner(request))),
  );
}

/** The operator's redeliveries, of any partner's notifications. */
export function operatorRedeliveryRoutes(app: HttpApp, { notifications, directory }: HttpDependencies): void {
  app.post(
    "/operator/v1/notifications/:id/redeliver",
    operation(operator.acts("input"), "redeliverAnyNotification", "Redeliver a notification", {
      params,
      body: redeliverBody,
      response: responses([202, redeliveryAnswer, "It is due; `held` says what still holds it back"], "not_found"),
    }),
    async (request, reply) => {
      const to = request.body?.to ?? "original";
      return reply
        .code(202)
        .send(await notifications.redeliver(undefined, requireNotificationId(request.params.id), to));
    },
  );
  app.post(
    "/operator/v1/redeliveries",
    operation(operator.acts("input"), "redeliver", "Redeliver many notifications", {
      description: "Pending ones are due now, at their step of the schedule; others begin a whole new one.",
      body: redeliveriesBody,
      response: responses(
        [200, redeliveredSchema, "How many matched, and how many are due again"],
        "invalid_text",
        "unknown_partner",
      ),
    }),
    async (request) => {
      const { filter, to = "original", ...options } = request.body;
      const { partner, ...rest } = filter;
      const selected = { ...rest, ...ofPartner(partner) };
      return await notifications.redeliverMany(selected, { to, ...options });
    },
  );
  app.get(
    "/operator/v1/redeliveries/:id",
    operation(viewer.reads, "getRedelivery", "See how much of a redelivery is delivered", {
      params: redeliveryParams,
      response: responses([200, redeliveryProgressSchema, "As of now"], "not_found"),
    }),
    async (request) => await notifications.redelivery(request.params.id),
  );
  app.post(
    "/operator/v1/partners/:id/test-notification",
    operation(operator.acts("partner"), "sendPartnerTestNotification", "Send a test notification to a partner", {
      description: "A sample Sale to the registered callback URL. It belongs to no transaction.",
      params: partnerParams,
      response: responses([202, summarySchema, "It is due"], "not_found", "no_callback_url"),
    }),
    async (request, reply) => {
      const partner = await requirePartner(directory, request.params.id);
      return reply.code(202).send(await notifications.sendTest(partner));
    },
  );
}
