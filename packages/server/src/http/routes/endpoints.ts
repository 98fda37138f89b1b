import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type EndpointId, readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { PartnerRoutes } from "../dependencies.ts";
import { reasonForPartner } from "../partner-attempts.ts";
import { endpointPageSchema, endpointSchema, endpointsQuery } from "../schemas/endpoint.ts";
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Notifications");

export const endpointParams = z.object({ id: described(z.string(), "The endpoint's id") });

/** The partner's own endpoints: listing and closing them. */
export function endpointRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/endpoints",
    operation("listEndpoints", "See which of your endpoints failed", {
      querystring: endpointsQuery,
      response: responses([200, endpointPageSchema, "A page"]),
    }),
    async (request) => {
      const page = { ...pageOf(request.query), partnerId: callers.partner(request).id };
      const { items, next } = await parts.endpoints.list(page);
      return { items: items.map(forPartner), next };
    },
  );
  app.post(
    "/v1/endpoints/:id/close",
    operation("closeEndpoint", "Close an endpoint's circuit", {
      description: "The endpoint works again: waiting deliveries are sent.",
      params: endpointParams,
      response: responses([200, endpointSchema, "It is closed"], "not_found"),
    }),
    async (request) => {
      const closed = await parts.endpoints.close(requireEndpointId(request.params.id), callers.partner(request).id);
      return closed === undefined ? notFound() : forPartner(closed);
    },
  );
}

function forPartner<Endpoint extends { readonly lastReason: string | null }>(endpoint: Endpoint): Endpoint {
  return { ...endpoint, lastReason: reasonForPartner(endpoint.lastReason) };
}

interface Page {
  readonly state?: "closed" | "open" | "gone" | undefined;
  readonly after?: string | undefined;
  readonly limit: number;
}

export function pageOf({ state, after, limit }: Page) {
  const afterId = after === undefined ? undefined : readId<"endpoint">(after);
  return { limit, ...(state !== undefined && { state }), ...(afterId !== undefined && { after: afterId }) };
}

export function requireEndpointId(text: string): EndpointId {
  return readId<"endpoint">(text) ?? notFound();
}

export function notFound(): never {
  throw new ServiceError("not_found", "There is no such endpoint.");
}
