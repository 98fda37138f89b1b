import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { type PartnerId, readId } from "../../ids.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { partnerSchema } from "../schemas/partner.ts";
import { responses } from "../schemas/problem.ts";
import { component, described } from "../schemas/registry.ts";

const path = "/operator/v1/partners/:id/callback-certificate";
const tags = ["Partners"];
const params = z.object({ id: described(z.string(), "The partner's id") });
const found = { 200: { schema: partnerSchema, description: "The partner" } };

const body = component(
  z.strictObject({
    certificate: described(z.string(), "PEM: the certificate, and what issued it after it"),
    key: described(z.string(), "PEM: its private key, which is stored encrypted and shown nowhere"),
  }),
  "CallbackCertificate",
  "The client certificate that Paybell shows to a partner's server",
);

/** mTLS: the certificate by which a partner's server knows Paybell. */
export function callbackCertificateRoutes(app: HttpApp, { registry }: HttpParts): void {
  app.put(
    path,
    {
      schema: {
        operationId: "putCallbackCertificate",
        tags,
        summary: "Show a client certificate to a partner's server",
        description: "It replaces the one before at once. It ends when the certificate does.",
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
        summary: "Show no client certificate to a partner's server any more",
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
