import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies, PartnerRoutes } from "../dependencies.ts";
import { EventStreams, eventStreamType } from "../event-stream.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import { figuresSchema, overviewSchema, spanQuery } from "../schemas/overview.ts";
import { responses } from "../schemas/problem.ts";

const tags = ["Deliveries"];
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
    {
      schema: {
        operationId: "getOverview",
        tags,
        summary: "Get the state of deliveries, and the backlog",
        querystring: spanQuery,
        response: responses({ 200: { schema: overviewSchema, description: "As of now" } }),
      },
    },
    async ({ query }) => await overview.all(query.span),
  );
  app.get(
    "/operator/v1/overview/live",
    {
      schema: {
        operationId: "watchOverview",
        tags,
        summary: "Stream the overview, every two seconds",
        description:
          "Server-sent events; the data of each is an Overview. The stream ends after five minutes, and when the " +
          "caller loses access. A caller may have eight open.",
        querystring: spanQuery,
        response: responses({
          200: { schema: z.string(), description: "A stream of events", type: eventStreamType },
        }),
      },
    },
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
    {
      schema: {
        operationId: "getPartnerFigures",
        tags,
        summary: "Get the statistics of deliveries to a partner",
        params: z.object({ id: described(z.string(), "The partner's id") }),
        querystring: spanQuery,
        response: responses({ 200: { schema: figuresSchema, description: "As of now" } }, "not_found"),
      },
    },
    async ({ params, query }) => {
      const id = readId<"partner">(params.id);
      if (id === undefined || (await registry.find(id)) === undefined) {
        throw new ServiceError("not_found", "There is no such partner.");
      }
      return await overview.of(id, query.span);
    },
  );
}

/** A partner's own. */
export function figuresRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/figures",
    {
      schema: {
        operationId: "getFigures",
        tags: ["Notifications"],
        summary: "Get the statistics of deliveries to you",
        querystring: spanQuery,
        response: responses({ 200: { schema: figuresSchema, description: "As of now" } }),
      },
    },
    async (request) => await parts.overview.of(callers.partner(request).id, request.query.span),
  );
}
