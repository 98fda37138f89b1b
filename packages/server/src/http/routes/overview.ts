import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { eventStream } from "../event-stream.ts";
import type { HttpApp, HttpParts, PartnerRoutes } from "../parts.ts";
import { figuresSchema, overviewSchema, spanQuery } from "../schemas/overview.ts";
import { responses } from "../schemas/problem.ts";
import { described } from "../schemas/registry.ts";

const tags = ["Deliveries"];
const liveEveryMs = 2_000;

/** How deliveries go, at a look and live. */
export function overviewRoutes(app: HttpApp, { overview, registry }: HttpParts): void {
  const closing = new AbortController();
  app.addHook("preClose", (done) => {
    closing.abort();
    done();
  });
  app.get(
    "/operator/v1/overview",
    {
      schema: {
        operationId: "getOverview",
        tags,
        summary: "See how deliveries go, and what stands now",
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
        summary: "Have the overview sent every two seconds",
        description: "Server-sent events; the data of each is an Overview. The stream ends after five minutes.",
        querystring: spanQuery,
        response: responses({
          200: { schema: z.string(), description: "A stream of events", type: "text/event-stream" },
        }),
      },
    },
    async (request, reply) => {
      const gone = new AbortController();
      reply.raw.once("close", () => gone.abort());
      const ends = AbortSignal.any([gone.signal, closing.signal]);
      return reply
        .headers({ "content-type": "text/event-stream", "cache-control": "no-store", "x-accel-buffering": "no" })
        .send(eventStream(() => overview.all(request.query.span), liveEveryMs, ends));
    },
  );
  app.get(
    "/operator/v1/partners/:id/figures",
    {
      schema: {
        operationId: "getPartnerFigures",
        tags,
        summary: "See how deliveries to a partner go",
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
        summary: "See how deliveries to you go",
        querystring: spanQuery,
        response: responses({ 200: { schema: figuresSchema, description: "As of now" } }),
      },
    },
    async (request) => await parts.overview.of(callers.partner(request).id, request.query.span),
  );
}
