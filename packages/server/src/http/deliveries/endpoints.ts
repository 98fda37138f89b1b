import { z } from "zod";
import { type EndpointId, readId } from "../../ids.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, type PartnerRoutes, responses } from "../operation.ts";
import { limit, noSuch, ofPartner, partnerIdText, requireId } from "../parameters.ts";
import { operator, partnerManages, partnerReads, viewer } from "../policy.ts";
import { reasonForPartner } from "./notifications.ts";

const ownOperation = operations("Notifications");
const operation = operations("Deliveries");

const states = ["closed", "open", "gone"] as const;
const time = z.iso.datetime();

export const endpointSchema = componentOf(
  "Endpoint",
  "A callback endpoint that has failed: an origin, or a URL that is gone",
  {
    id: z.uuid(),
    partnerId: z.uuid(),
    kind: described(z.enum(["origin", "url"]), "url: one exact URL, which answered 410"),
    target: described(z.string(), "https://host:port, or the exact URL"),
    state: described(
      z.enum(states),
      "open: deliveries wait, one tries it from time to time; gone: they wait until it is closed manually",
    ),
    failures: described(z.int(), "Failures in a row"),
    lastReason: described(z.string().nullable(), "Why it failed last, in a stable word"),
    openedAt: time.nullable(),
    probeAt: described(time.nullable(), "While it is open: when one delivery tries it again"),
    probes: described(z.int(), "Deliveries that tried it again since it opened"),
    updatedAt: time,
  },
);

export const endpointPageSchema = componentOf(
  "EndpointPage",
  "Endpoints, the newest first. One that never failed is closed, and not among them",
  { items: z.array(endpointSchema), next: z.uuid().nullable() },
);

const page = {
  state: z.enum(states).optional(),
  after: described(z.uuid().optional(), "`next` of the previous page"),
  limit,
};

const endpointsQuery = z.strictObject(page);
const operatorEndpointsQuery = z.strictObject({
  partner: described(partnerIdText, "A partner's id").optional(),
  ...page,
});

const closeEndpointBody = bodyOf("EndpointClosing", "Whose endpoint to close", {
  partnerId: described(partnerIdText, "Only if it is this partner's").optional(),
});

const endpointParams = z.object({ id: described(z.string(), "The endpoint's id") });

/** The partner's own endpoints: listing and closing them. */
export function endpointRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/endpoints",
    ownOperation(partnerReads, "listEndpoints", "See which of your endpoints failed", {
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
    ownOperation(partnerManages.acts("input"), "closeEndpoint", "Close an endpoint's circuit", {
      description: "The endpoint works again: waiting deliveries are sent.",
      params: endpointParams,
      response: responses([200, endpointSchema, "It is closed"], "not_found"),
    }),
    async (request) => {
      const closed = await parts.endpoints.close(requireEndpointId(request.params.id), callers.partner(request).id);
      return closed === undefined ? noSuch("endpoint") : forPartner(closed);
    },
  );
}

function forPartner<Endpoint extends { readonly lastReason: string | null }>(endpoint: Endpoint): Endpoint {
  return { ...endpoint, lastReason: reasonForPartner(endpoint.lastReason) };
}

function pageOf({ state, after, limit }: z.infer<typeof endpointsQuery>) {
  const afterId = after === undefined ? undefined : readId<"endpoint">(after);
  return { limit, ...(state !== undefined && { state }), ...(afterId !== undefined && { after: afterId }) };
}

function requireEndpointId(text: string): EndpointId {
  return requireId<"endpoint">(text, "endpoint");
}

/** The operator's view of every partner's endpoints. */
export function operatorEndpointRoutes(app: HttpApp, { endpoints }: HttpDependencies): void {
  app.get(
    "/operator/v1/endpoints",
    operation(viewer.reads, "searchEndpoints", "See which endpoints failed", {
      querystring: operatorEndpointsQuery,
      response: responses([200, endpointPageSchema, "A page"], "unknown_partner"),
    }),
    async (request) => {
      const { partner, ...page } = request.query;
      return await endpoints.list({ ...pageOf(page), ...ofPartner(partner) });
    },
  );
  app.post(
    "/operator/v1/endpoints/:id/close",
    operation(operator.acts("input"), "closePartnersEndpoint", "Close an endpoint's circuit", {
      params: endpointParams,
      body: closeEndpointBody.optional(),
      response: responses([200, endpointSchema, "It is closed"], "unknown_partner", "not_found"),
    }),
    async (request) => {
      const { partnerId } = ofPartner(request.body?.partnerId);
      return (await endpoints.close(requireEndpointId(request.params.id), partnerId)) ?? noSuch("endpoint");
    },
  );
}
