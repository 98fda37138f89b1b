import { type PartnerId, readId } from "../../ids.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { closeEndpointBody, endpointPageSchema, endpointSchema, operatorEndpointsQuery } from "../schemas/endpoint.ts";
import { responses } from "../schemas/problem.ts";
import { endpointParams, notFound, pageOf, requireEndpointId } from "./endpoints.ts";

const tags = ["Deliveries"];

/** The operator's view of every partner's endpoints. */
export function operatorEndpointRoutes(app: HttpApp, { endpoints }: HttpDependencies): void {
  app.get(
    "/operator/v1/endpoints",
    {
      schema: {
        operationId: "searchEndpoints",
        tags,
        summary: "See which endpoints failed",
        querystring: operatorEndpointsQuery,
        response: responses({ 200: { schema: endpointPageSchema, description: "A page" } }, "unknown_partner"),
      },
    },
    async (request) => {
      const { partner, ...page } = request.query;
      return await endpoints.list({ ...pageOf(page), ...ofPartner(partner) });
    },
  );
  app.post(
    "/operator/v1/endpoints/:id/close",
    {
      schema: {
        operationId: "closePartnersEndpoint",
        tags,
        summary: "Close an endpoint's circuit",
        params: endpointParams,
        body: closeEndpointBody.optional(),
        response: responses(
          { 200: { schema: endpointSchema, description: "It is closed" } },
          "unknown_partner",
          "not_found",
        ),
      },
    },
    async (request) => {
      const { partnerId } = ofPartner(request.body?.partnerId);
      return (await endpoints.close(requireEndpointId(request.params.id), partnerId)) ?? notFound();
    },
  );
}

/** Its shape is known to be that of an id. */
function ofPartner(text: string | undefined): { partnerId?: PartnerId } {
  const partnerId = text === undefined ? undefined : readId<"partner">(text);
  return partnerId === undefined ? {} : { partnerId };
}
