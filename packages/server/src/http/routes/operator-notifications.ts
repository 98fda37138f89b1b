import { z } from "zod";
import { PaybellError } from "../../errors.ts";
import { type PartnerId, readId } from "../../ids.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { inspectedSchema } from "../schemas/inspected.ts";
import {
  redeliverBody,
  redeliveredSchema,
  redeliveriesBody,
  searchQuery,
  searchSchema,
  summarySchema,
} from "../schemas/notification.ts";
import { bodyErrors, operatorErrors, queryErrors, responses } from "../schemas/problem.ts";
import { described } from "../schemas/registry.ts";
import { requireId } from "./notifications.ts";

const tags = ["Deliveries"];

/** The operator's view of every partner's notifications. */
export function operatorNotificationRoutes(app: HttpApp, { notifications }: HttpParts): void {
  app.get(
    "/operator/v1/notifications",
    {
      schema: {
        operationId: "searchNotifications",
        tags,
        summary: "Search notifications",
        querystring: searchQuery,
        response: responses(
          { 200: { schema: searchSchema, description: "A page" } },
          ...operatorErrors,
          ...queryErrors,
          "unknown_partner",
          "invalid_cursor",
        ),
      },
    },
    async (request) => {
      const { partner, ...rest } = request.query;
      return await notifications.search({ ...rest, ...ofPartner(partner) });
    },
  );
  app.get(
    "/operator/v1/notifications/:id",
    {
      schema: {
        operationId: "inspectNotification",
        tags,
        summary: "Get a notification with its attempts and events",
        params: z.object({ id: described(z.string(), "The notification's id") }),
        response: responses(
          { 200: { schema: inspectedSchema, description: "The notification" } },
          ...operatorErrors,
          "not_found",
        ),
      },
    },
    async (request) => {
      const found = await notifications.inspect(requireId(request.params.id));
      if (found === undefined) throw new PaybellError("not_found", "There is no such notification.");
      return found;
    },
  );
  app.post(
    "/operator/v1/notifications/:id/redeliver",
    {
      schema: {
        operationId: "redeliverAnyNotification",
        tags,
        summary: "Have a notification sent once more",
        params: z.object({ id: described(z.string(), "The notification's id") }),
        body: redeliverBody,
        response: responses(
          { 202: { schema: summarySchema, description: "It is due again" } },
          ...operatorErrors,
          ...bodyErrors,
          "not_found",
          "notification_pending",
        ),
      },
    },
    async (request, reply) => {
      const to = request.body?.to ?? "original";
      return reply.code(202).send(await notifications.redeliver(undefined, requireId(request.params.id), to));
    },
  );
  app.post(
    "/operator/v1/redeliveries",
    {
      schema: {
        operationId: "redeliver",
        tags,
        summary: "Have many notifications sent once more",
        description: "What is still pending is left as it is.",
        body: redeliveriesBody,
        response: responses(
          { 200: { schema: redeliveredSchema, description: "How many matched, and how many are due again" } },
          ...operatorErrors,
          ...bodyErrors,
          "invalid_text",
          "unknown_partner",
        ),
      },
    },
    async (request) => {
      const { filter, to = "original", dryRun = false } = request.body;
      const { partner, ...rest } = filter;
      const selected = { ...rest, ...ofPartner(partner) };
      return await notifications.redeliverMany(selected, to, dryRun);
    },
  );
}

/** Its shape is known to be that of an id. */
function ofPartner(text: string | undefined): { partnerId?: PartnerId } {
  const partnerId = text === undefined ? undefined : readId<"partner">(text);
  return partnerId === undefined ? {} : { partnerId };
}
