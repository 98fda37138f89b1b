import { badFields, type FieldProblem } from "../../errors.ts";
import { type PartnerId, readId } from "../../ids.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { closeEndpointBody, endpointPageSchema, endpointSchema, operatorEndpointsQuery } from "../schemas/endpoint.ts";
import { bodyErrors, operatorErrors, queryErrors, responses } from "../schemas/problem.ts";
import { endpointParams, notFound, pageOf, requireEndpointId } from "./endpoints.ts";

const tags = ["Deliveries"];

/** The operator's view of every partner's endpoints. */
export function operatorEndpointRoutes(app: HttpApp, { endpoints }: HttpParts): void {
  app.get(
    "/operator/v1/endpoints",
    {
      schema: {
        operationId: "searchEndpoints",
        tags,
        summary: "See which endpoints failed",
        querystring: operatorEndpointsQuery,
        response: responses(
          { 200: { schema: endpointPageSchema, description: "A page" } },
          ...operatorErrors,
          ...queryErrors,
          "unknown_partner",
        ),
      },
    },
    async (request) => {
      const { partner, ...page } = request.query;
      return await endpoints.list({ ...pageOf(page), ...ofPartner("partner", partner) });
    },
  );
  app.post(
    "/operator/v1/endpoints/:id/close",
    {
      schema: {
        operationId: "closePartnersEndpoint",
        tags,
        summary: "Have deliveries to an endpoint go on at once",
        params: endpointParams,
        body: closeEndpointBody.optional(),
        response: responses(
          { 200: { schema: endpointSchema, description: "It is closed" } },
          ...operatorErrors,
          ...bodyErrors,
          "unknown_partner",
          "not_found",
        ),
      },
    },
    async (request) => {
      const { partnerId } = ofPartner("partnerId", request.body?.partnerId);
      return (await endpoints.close(requireEndpointId(request.params.id), partnerId)) ?? notFound();
    },
  );
}

function ofPartner(field: string, text: string | undefined): { partnerId?: PartnerId } {
  if (text === undefined) return {};
  const partnerId = readId<"partner">(text);
  if (partnerId !== undefined) return { partnerId };
  const problem: FieldProblem = { field, code: "unknown_partner", message: `${field} is no partner's id.` };
  throw badFields([problem]);
}
