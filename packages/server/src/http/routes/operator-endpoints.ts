import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { closeEndpointBody, endpointPageSchema, endpointSchema, operatorEndpointsQuery } from "../schemas/endpoint.ts";
import { ofPartner, operations, responses } from "../schemas/problem.ts";
import { endpointParams, notFound, pageOf, requireEndpointId } from "./endpoints.ts";

const operation = operations("Deliveries");

/** The operator's view of every partner's endpoints. */
export function operatorEndpointRoutes(app: HttpApp, { endpoints }: HttpDependencies): void {
  app.get(
    "/operator/v1/endpoints",
    operation("searchEndpoints", "See which endpoints failed", {
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
    operation("closePartnersEndpoint", "Close an endpoint's circuit", {
      params: endpointParams,
      body: closeEndpointBody.optional(),
      response: responses([200, endpointSchema, "It is closed"], "unknown_partner", "not_found"),
    }),
    async (request) => {
      const { partnerId } = ofPartner(request.body?.partnerId);
      return (await endpoints.close(requireEndpointId(request.params.id), partnerId)) ?? notFound();
    },
  );
}
