import { z } from "zod";
import { readId } from "../../ids.ts";
import type { HttpApp, HttpDependencies, PartnerRoutes } from "../dependencies.ts";
import { EventStreams, eventStreamType } from "../event-stream.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import { figuresSchema, overviewSchema, spanQuery } from "../schemas/overview.ts";
import { noSuchPartner, operations, partnerParams, responses } from "../schemas/problem.ts";

const operation = operations("Deliveries");
const ownOperation = operations("Notifications");

const liveEveryMs = 2_000;

/** Routes of the overview of deliveries: read once, and live. */
export function overviewRoutes(app: HttpApp, { overview, registry }: HttpDependencies, callers: OperatorCallers): void {
  const streams = new EventStreams();
  app.addHook("preClose", (done) => {
    streams.close();
    done();
  });
  app.get(
    "/operator/v1/overview",
    operation("getOverview", "Get the state of deliveries, and the backlog", {
      querystring: spanQuery,
      response: responses([200, overviewSchema, "As of now"]),
    }),
    async ({ query }) => await overview.all(query.span),
  );
  app.get(
    "/operator/v1/overview/live",
    operation("watchOverview", "Stream the overview, every two seconds", {
      description:
        "Server-sent events; the data of each is an Overview. The stream ends after five minutes, and when the " +
        "caller loses access. A caller may have eight open.",
      querystring: spanQuery,
      response: responses([200, z.string(), "A stream of events", eventStreamType]),
    }),
    async (request, reply) =>
      streams.send(request, reply, {
        callerId: callers.actor(request).tokenId,
        admit: () => callers.authenticate(request),
        read: () => overview.all(request.query.span),
        everyMs: liveEveryMs,
      }),
  );
  app.get(
    "/operator/v1/partners/:id/figures",
    operation("getPartnerFigures", "Get the statistics of deliveries to a partner", {
      params: partnerParams,
      querystring: spanQuery,
      response: responses([200, figuresSchema, "As of now"], "not_found"),
    }),
    async ({ params, query }) => {
      const id = readId<"partner">(params.id);
      if (id === undefined || (await registry.find(id)) === undefined) {
        noSuchPartner();
      }
      return await overview.of(id, query.span);
    },
  );
}

/** A partner's own. */
export function figuresRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/figures",
    ownOperation("getFigures", "Get the statistics of deliveries to you", {
      querystring: spanQuery,
      response: responses([200, figuresSchema, "As of now"]),
    }),
    async (request) => await parts.overview.of(callers.partner(request).id, request.query.span),
  );
}
