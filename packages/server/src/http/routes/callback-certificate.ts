import { z } from "zod";
import { bodyOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { partnerSchema } from "../schemas/partner.ts";
import { operations, partnerParams, requirePartnerId, responses } from "../schemas/problem.ts";

const operation = operations("Partners");

const path = "/operator/v1/partners/:id/callback-certificate";
const found = [200, partnerSchema, "The partner"] as const;

const body = bodyOf("CallbackCertificate", "The client certificate that Paybell shows to a partner's server", {
  certificate: described(z.string(), "PEM: the certificate, followed by its intermediate certificates"),
  key: described(z.string(), "PEM: its private key, which is stored encrypted and never shown"),
});

/** mTLS: the certificate by which a partner's server knows Paybell. */
export function callbackCertificateRoutes(app: HttpApp, { registry }: HttpDependencies): void {
  app.put(
    path,
    operation("putCallbackCertificate", "Set the client certificate for a partner's server", {
      description: "It replaces the previous one immediately.",
      params: partnerParams,
      body,
      response: responses(found, "not_found"),
    }),
    async (request) => registry.putCallbackCertificate(requirePartnerId(request.params.id), request.body),
  );
  app.delete(
    path,
    operation("removeCallbackCertificate", "Remove the client certificate for a partner's server", {
      params: partnerParams,
      response: responses(found, "not_found"),
    }),
    async (request) => registry.removeCallbackCertificate(requirePartnerId(request.params.id)),
  );
}
