import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type PartnerId, readId } from "../../ids.ts";
import { component, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { partnerSchema } from "../schemas/partner.ts";
import { responses } from "../schemas/problem.ts";

const path = "/operator/v1/partners/:id/callback-certificate";
const tags = ["Partners"];
const params = z.object({ id: described(z.string(), "The partner's id") });
const found = { 200: { schema: partnerSchema, description: "The partner" } };

const body = component(
  z.strictObject({
    certificate: described(z.string(), "PEM: the certificate, followed by its intermediate certificates"),
    key: described(z.string(), "PEM: its private key, which is stored encrypted and never shown"),
  }),
  "CallbackCertificate",
  "The client certificate that Paybell shows to a partner's server",
);

/** mTLS: the certificate by which a partner's server knows Paybell. */
export function callbackCertificateRoutes(app: HttpApp, { registry }: HttpDependencies): void {
  app.put(
    path,
    {
      schema: {
        operationId: "putCallbackCertificate",
        tags,
        summary: "Set the client certificate for a partner's server",
        description: "It replaces the previous one immediately.",
        params,
        body,
        response: responses(found, "not_found"),
      },
    },
    async (request) => registry.putCallbackCertificate(requirePartner(request.params.id), request.body),
  );
  app.delete(
    path,
    {
      schema: {
        operationId: "removeCallbackCertificate",
        tags,
        summary: "Remove the client certificate for a partner's server",
        params,
        response: responses(found, "not_found"),
      },
    },
    async (request) => registry.removeCallbackCertificate(requirePartner(request.params.id)),
  );
}

function requirePartner(text: string): PartnerId {
  const id = readId<"partner">(text);
  if (id === undefined) throw new ServiceError("not_found", "There is no such partner.");
  return id;
}
