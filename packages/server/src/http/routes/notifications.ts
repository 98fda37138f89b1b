import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type NotificationId, readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { PartnerRoutes } from "../dependencies.ts";
import { asItsPartnerSees, reasonForPartner, reasonsOfPartner, summaryForPartner } from "../partner-attempts.ts";
import {
  detailSchema,
  ownSearchQuery,
  pulledSchema,
  pullQuery,
  searchSchema,
  summarySchema,
} from "../schemas/notification.ts";
import { backlogSchema } from "../schemas/overview.ts";
import { operations, responses, untilGone } from "../schemas/problem.ts";
import {
  ownRedeliveriesBody,
  redeliverBody,
  redeliveredSchema,
  redeliveryAnswer,
  redeliveryParams,
  redeliveryProgressSchema,
} from "../schemas/redelivery.ts";
import { sealedSchema } from "../schemas/sealed-notification.ts";

const operation = operations("Notifications");

const params = z.object({ id: described(z.string(), "The notification's id, as in webhook-id") });

/** The partner's own notifications: pull, look up, redeliver, test. */
export function notificationRoutes({ app, parts, callers }: PartnerRoutes): void {
  /** Whether the waiting caller is still connected, and the partner's state once the wait is over. */
  const presence = (request: FastifyRequest, reply: FastifyReply) => {
    const partnerNow = async () => {
      await callers.authenticate(request);
      return callers.partner(request);
    };
    return { signal: untilGone(reply), partnerNow };
  };

  app.get(
    "/v1/notifications",
    operation("pullNotifications", "Fetch what was missed", {
      description:
        "Everything ever created for you that is still kept, in commit order, sealed as it would be sent now. " +
        "Go on from `next`: nothing is skipped. Deduplicate by the IPN's id. With `wait` an empty page is answered " +
        "as soon as there is something, or when the time is over; as many requests may wait as the service " +
        "allows, and one more is refused.",
      querystring: pullQuery,
      response: responses(
        [200, pulledSchema, "A page; empty at the end"],
        "too_many_requests",
        "invalid_cursor",
        "cursor_from_another_history",
        "cursor_expired",
      ),
    }),
    async (request, reply) => {
      const { wait, ...page } = request.query;
      const patience = wait === undefined ? undefined : { durationMs: wait * 1_000, ...presence(request, reply) };
      return await parts.notifications.pull(callers.partner(request), { ...page, wait: patience });
    },
  );
  app.get(
    "/v1/notifications/search",
    operation("searchOwnNotifications", "Search your notifications", {
      description: "For people who look for one: to fetch what was missed, use the list in commit order.",
      querystring: ownSearchQuery,
      response: responses([200, searchSchema, "A page"], "invalid_cursor"),
    }),
    async (request) => {
      const { reason, ...search } = request.query;
      const own = { ...search, reason: reasonsOfPartner(reason), partnerId: callers.partner(request).id };
      const { items, next } = await parts.notifications.search(own);
      return { items: items.map(summaryForPartner), next };
    },
  );
  app.get(
    "/v1/backlog",
    operation("getBacklog", "See what you have not received, and how far you have pulled", {
      response: responses([200, backlogSchema, "As of now"]),
    }),
    async (request) => {
      const { id } = callers.partner(request);
      const [backlog, trouble] = await Promise.all([parts.notifications.backlog(id), parts.overview.troubleOf(id)]);
      return { trouble: trouble && { ...trouble, reason: reasonForPartner(trouble.reason) }, ...backlog };
    },
  );
  app.post(
    "/v1/redeliveries",
    operation("redeliverOwn", "Redeliver many of your notifications", {
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
    operation("getOwnRedelivery", "See how much of a redelivery is delivered", {
      params: redeliveryParams,
      response: responses([200, redeliveryProgressSchema, "As of now"], "not_found"),
    }),
    async (request) => await parts.notifications.redelivery(request.params.id, callers.partner(request).id),
  );
  app.get(
    "/v1/notifications/:id",
    operation("getNotification", "Get a notification with its attempts", {
      params,
      response: responses([200, detailSchema, "The notification"], "not_found"),
    }),
    async (request) => {
      const found = await parts.notifications.find(requireId(request.params.id), callers.partner(request).id);
      if (found === undefined) throw notFound();
      return asItsPartnerSees(found);
    },
  );
  app.get(
    "/v1/notifications/:id/sealed",
    operation("getSealedNotification", "Fetch one notification, sealed as it would be sent now", {
      description: "Your key opens it. Other than the list in commit order, it does not count as pulled.",
      params,
      response: responses([200, sealedSchema, "The sealed IPN"], "not_found", "content_changed"),
    }),
    async (request) => await parts.notifications.sealed(request.params.id, callers.partner(request)),
  );
  app.post(
    "/v1/notifications/:id/redeliver",
    operation("redeliverNotification", "Redeliver a notification", {
      params,
      body: redeliverBody,
      response: responses([202, redeliveryAnswer, "It is due; `held` says what still holds it back"], "not_found"),
    }),
    async (request, reply) => {
      const { id } = callers.partner(request);
      const to = request.body?.to ?? "original";
      const summary = await parts.notifications.redeliver(id, requireId(request.params.id), to);
      return reply.code(202).send({ ...summaryForPartner(summary), held: summary.held });
    },
  );
  app.post(
    "/v1/test-notification",
    operation("sendTestNotification", "Send a test notification", {
      description: "A sample Sale to the registered callback URL. It belongs to no transaction.",
      response: responses([202, summarySchema, "It is due"], "no_callback_url"),
    }),
    async (request, reply) => reply.code(202).send(await parts.notifications.sendTest(callers.partner(request))),
  );
}

export function requireId(text: string): NotificationId {
  const id = readId<"notification">(text);
  if (id === undefined) throw notFound();
  return id;
}

function notFound(): ServiceError {
  return new ServiceError("not_found", "There is no such notification.");
}
