import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { searchQuery, searchSchema, summarySchema } from "../schemas/notification.ts";
import { explainedSchema, inspectedSchema, proofSchema } from "../schemas/operator-notification.ts";
import { noSuchPartner, ofPartner, operations, partnerParams, responses } from "../schemas/problem.ts";
import {
  redeliverBody,
  redeliveredSchema,
  redeliveriesBody,
  redeliveryAnswer,
  redeliveryParams,
  redeliveryProgressSchema,
} from "../schemas/redelivery.ts";
import { requireId } from "./notifications.ts";

const operation = operations("Deliveries");

/** The operator's view of every partner's notifications. */
export function operatorNotificationRoutes(app: HttpApp, { notifications, directory }: HttpDependencies): void {
  app.get(
    "/operator/v1/notifications",
    operation("searchNotifications", "Search notifications", {
      querystring: searchQuery,
      response: responses([200, searchSchema, "A page"], "unknown_partner", "invalid_cursor"),
    }),
    async (request) => {
      const { partner, ...rest } = request.query;
      return await notifications.search({ ...rest, ...ofPartner(partner) });
    },
  );
  app.get(
    "/operator/v1/notifications/:id",
    operation("inspectNotification", "Get a notification with its attempts and events", {
      params: z.object({ id: described(z.string(), "The notification's id") }),
      response: responses([200, inspectedSchema, "The notification"], "not_found"),
    }),
    async (request) => {
      const found = await notifications.inspect(requireId(request.params.id));
      if (found === undefined) throw new ServiceError("not_found", "There is no such notification.");
      return found;
    },
  );
  app.get(
    "/operator/v1/notifications/:id/content",
    operation("readNotification", "Read a notification's IPN, and how it is signed and encrypted", {
      description: "As an attempt would be made now, by the partner's present settings. The audit records each look.",
      params: z.object({ id: described(z.string(), "The notification's id") }),
      response: responses([200, explainedSchema, "What an attempt would send now"], "not_found", "content_changed"),
    }),
    async (request) => await notifications.explain(request.params.id, (id) => directory.find(id)),
  );
  app.get(
    "/operator/v1/notifications/:id/proof",
    operation("proveDelivery", "Get a notification's history, signed", {
      description: "For a dispute. The audit records that it was given.",
      params: z.object({ id: described(z.string(), "The notification's id") }),
      response: responses([200, proofSchema, "The proof"], "not_found", "content_changed"),
    }),
    async (request) => await notifications.prove(request.params.id),
  );
  app.post(
    "/operator/v1/notifications/:id/redeliver",
    operation("redeliverAnyNotification", "Redeliver a notification", {
      params: z.object({ id: described(z.string(), "The notification's id") }),
      body: redeliverBody,
      response: responses([202, redeliveryAnswer, "It is due; `held` says what still holds it back"], "not_found"),
    }),
    async (request, reply) => {
      const to = request.body?.to ?? "original";
      return reply.code(202).send(await notifications.redeliver(undefined, requireId(request.params.id), to));
    },
  );
  app.post(
    "/operator/v1/partners/:id/test-notification",
    operation("sendPartnerTestNotification", "Send a test notification to a partner", {
      description: "A sample Sale to the registered callback URL. It belongs to no transaction.",
      params: partnerParams,
      response: responses([202, summarySchema, "It is due"], "not_found", "no_callback_url"),
    }),
    async (request, reply) => {
      const id = readId<"partner">(request.params.id);
      const partner = id && (await directory.find(id));
      if (partner === undefined) noSuchPartner();
      return reply.code(202).send(await notifications.sendTest(partner));
    },
  );
  app.post(
    "/operator/v1/redeliveries",
    operation("redeliver", "Redeliver many notifications", {
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
    operation("getRedelivery", "See how much of a redelivery is delivered", {
      params: redeliveryParams,
      response: responses([200, redeliveryProgressSchema, "As of now"], "not_found"),
    }),
    async (request) => await notifications.redelivery(request.params.id),
  );
}
