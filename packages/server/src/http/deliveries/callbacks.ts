import { notifiedCommands } from "@paybell/contract";
import { countsOf } from "@paybell/partner/certify";
import { z } from "zod";
import type { Certification } from "../../callbacks/certifications.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, type PartnerRoutes, responses, untilGone } from "../operation.ts";
import { partnerParams, requirePartner, requirePartnerId } from "../parameters.ts";
import { admin, operator, partnerManages, partnerReads, viewer } from "../policy.ts";
import { partnerSchema, selfSchema } from "../registry/partners.ts";

const operation = operations("Partners");

const words = {
  means: described(z.string(), "What it would cause in production"),
  fix: described(z.string(), "What to do about it"),
  documentation: described(z.string(), "The guide that says more, relative to the service's address"),
};

const exchange = z.object({
  what: described(z.string(), "What was sent"),
  status: described(z.int().nullable(), "Of the answer; null: there was none"),
  failure: described(z.string().nullable(), "Why there was no answer, in a stable word"),
  detail: z.string().nullable(),
  ms: z.number(),
});

const certifiedCase = componentOf("CertifiedCase", "One requirement for an endpoint, and whether it met it", {
  code: described(z.string(), "Stable"),
  title: z.string(),
  expected: z.enum(["2xx", "4xx"]),
  verdict: z.enum(["passed", "failed", "not_run", "left_out"]),
  finding: z.object({ code: z.string(), ...words }).nullable(),
  note: z.string().nullable(),
  exchanges: z.array(exchange),
});

export const certificationSchema = componentOf(
  "Certification",
  "What an endpoint does with notifications that it must accept, and with forged ones",
  {
    passed: z.boolean(),
    url: z.string(),
    run: described(z.string(), "In each of its notifications: merchantTransId is CERTIFY-<run>-…"),
    durationMs: z.number(),
    certificateEndsAt: described(z.iso.datetime().nullable(), "When the server's certificate ends; null: http://"),
    counts: z.object({ passed: z.int(), failed: z.int(), notRun: z.int(), leftOut: z.int() }),
    diagnoses: described(
      z.array(z.object({ code: z.string(), cases: z.array(z.string()), ...words })),
      "Causes that several failures have in common: these first",
    ),
    cases: z.array(certifiedCase),
  },
);

export const certificatesSchema = componentOf(
  "EndpointCertificates",
  "The certificates that deliveries to a partner depend on",
  {
    items: z.array(
      z.object({
        whose: described(
          z.enum(["server", "client", "authority"]),
          "server: the endpoint's own; client: ours, presented to it; authority: trusted for it alone",
        ),
        target: described(z.string().nullable(), "The endpoint's origin"),
        endsAt: z.iso.datetime().nullable(),
        problem: described(z.string().nullable(), "Why the end is not known"),
      }),
    ),
  },
);

export const keyUseSchema = componentOf(
  "KeyUse",
  "How the newest 1,000 attempts within seven days fared, by the key that sealed them",
  {
    items: z.array(
      z.object({
        keyId: described(z.string(), "The version of the encryption key"),
        accepted: described(z.int(), "Attempts that the partner accepted"),
        failed: z.int(),
        lastAcceptedAt: z.iso.datetime().nullable(),
      }),
    ),
  },
);

const certifyBody = bodyOf("Certify", "Which endpoint is tested", {
  url: described(z.string().max(2_048), "Left out: the registered one").optional(),
});

const ownOperation = operations("Self");

const certified = [200, certificationSchema, "Every case was run"] as const;
const certifyErrors = [
  "no_callback_url",
  "invalid_callback_url",
  "insecure_callback_url",
  "address_not_whitelisted",
  "request_timeout",
  "too_many_requests",
] as const;
const certifyDescription =
  "POSTs invented notifications, some of them forged, and takes some ten seconds, two minutes at most. Each has a " +
  "merchantTransId that begins with CERTIFY- and the tid CERTIFY1: nothing may be shipped for them.";

const certificatesFound = [200, certificatesSchema, "As of now"] as const;
const keyUseFound = [200, keyUseSchema, "As of now"] as const;

const certificatePath = "/operator/v1/partners/:id/callback-certificate";
const partnerFound = [200, partnerSchema, "The partner"] as const;

/** mTLS: the certificate by which a partner's server knows Paybell. */
const certificateBody = bodyOf(
  "CallbackCertificate",
  "The client certificate that Paybell shows to a partner's server",
  {
    certificate: described(z.string(), "PEM: the certificate, followed by its intermediate certificates"),
    key: described(z.string(), "PEM: its private key, which is stored encrypted and never shown"),
  },
);

/** Tests of a partner's endpoint by the operator, what is seen of it, and our client certificate for it. */
export function operatorCallbackRoutes(app: HttpApp, parts: HttpDependencies): void {
  const { directory, certifications, certificatesOf, notifications, registry } = parts;
  const partnerOf = (id: string) => requirePartner(directory, id);
  app.get(
    "/operator/v1/partners/:id/certificates",
    operation(viewer.reads, "getPartnerCertificates", "See when the certificates of a partner's callbacks end", {
      description: "The endpoint is connected to now; nothing is sent.",
      params: partnerParams,
      response: responses(certificatesFound, "not_found"),
    }),
    async (request) => ({ items: [...(await certificatesOf(await partnerOf(request.params.id)))] }),
  );
  app.get(
    "/operator/v1/partners/:id/key-use",
    operation(viewer.reads, "getKeyUse", "See which version of its encryption key a partner accepts", {
      params: partnerParams,
      response: responses(keyUseFound, "not_found"),
    }),
    async (request) => ({ items: [...(await notifications.keyUse((await partnerOf(request.params.id)).id))] }),
  );
  app.post(
    "/operator/v1/partners/:id/certify",
    operation(
      operator.acts("partner"),
      "certifyPartner",
      "Test a partner's endpoint with notifications that it must accept or refuse",
      {
        description: certifyDescription,
        params: partnerParams,
        body: certifyBody,
        response: responses(certified, ...certifyErrors, "not_found"),
      },
    ),
    async (request, reply) => {
      const partner = await partnerOf(request.params.id);
      return viewOf(await certifications.run(partner, request.body.url, untilGone(reply)));
    },
  );
  app.put(
    certificatePath,
    operation(admin.changes("partner"), "putCallbackCertificate", "Set the client certificate for a partner's server", {
      description: "It replaces the previous one immediately.",
      params: partnerParams,
      body: certificateBody,
      response: responses(partnerFound, "not_found"),
    }),
    async (request) => registry.putCallbackCertificate(requirePartnerId(request.params.id), request.body),
  );
  app.delete(
    certificatePath,
    operation(
      admin.changes("partner"),
      "removeCallbackCertificate",
      "Remove the client certificate for a partner's server",
      {
        params: partnerParams,
        response: responses(partnerFound, "not_found"),
      },
    ),
    async (request) => registry.removeCallbackCertificate(requirePartnerId(request.params.id)),
  );
}

/** A partner's own tests of its endpoint, and its change of the URL. */
export function callbackRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.get(
    "/v1/certificates",
    ownOperation(partnerReads, "getCertificates", "See when the certificates of your callbacks end", {
      description: "Your endpoint is connected to now; nothing is sent.",
      response: responses(certificatesFound),
    }),
    async (request) => ({ items: [...(await parts.certificatesOf(callers.partner(request)))] }),
  );
  app.get(
    "/v1/key-use",
    ownOperation(partnerReads, "getOwnKeyUse", "See which version of your encryption key your endpoint accepts", {
      response: responses(keyUseFound),
    }),
    async (request) => ({ items: [...(await parts.notifications.keyUse(callers.partner(request).id))] }),
  );
  app.post(
    "/v1/certify",
    ownOperation(
      partnerManages.acts("input"),
      "certifyEndpoint",
      "Test your endpoint with notifications that it must accept or refuse",
      {
        description: certifyDescription,
        body: certifyBody,
        response: responses(certified, ...certifyErrors),
      },
    ),
    async (request, reply) =>
      viewOf(await parts.certifications.run(callers.partner(request), request.body.url, untilGone(reply))),
  );
  app.put(
    "/v1/callback-url",
    ownOperation(
      partnerManages.acts("input"),
      "changeCallbackUrl",
      "Change a callback URL of yours, once the new one has accepted a test IPN",
      {
        description:
          "A sample Sale is sent to the new URL, for the command SETTLEMENT a sample settlement. If it answers 2xx, " +
          "the URL is registered, also for what is queued. Otherwise nothing changes. Only where the operator allows " +
          "it by the setting callBackUrlChange.",
        body: z.strictObject({
          callBackUrl: described(
            z.string().max(2_048).nullable(),
            "Within your callbackAddresses; null, with command: this command's IPNs go to your callBackUrl again",
          ),
          command: described(z.enum(notifiedCommands), "Only IPNs of this command go there").optional(),
        }),
        response: responses(
          [200, selfSchema, "It is registered"],
          "invalid_callback_url",
          "insecure_callback_url",
          "address_not_whitelisted",
          "callback_url_fixed",
          "callback_url_not_confirmed",
        ),
      },
    ),
    async (request) => {
      const changed = await parts.urlChange.change(callers.partner(request), callers.keyId(request), request.body);
      return { ...changed, egressAddresses: parts.config.egressAddresses, proofPublicKey: parts.proofPublicKey };
    },
  );
}

/** Without the bodies that were sent and came: an answer may hold anything. */
function viewOf({ results, diagnoses, passed, url, run, durationMs, certificateEndsAt }: Certification) {
  return {
    ...{ passed, url, run, durationMs, certificateEndsAt },
    counts: countsOf(results),
    diagnoses: diagnoses.map((one) => ({ ...one, cases: [...one.cases] })),
    cases: results.map(({ code, title, expects, verdict, finding, note, exchanges }) => ({
      ...{ code, title, verdict },
      expected: expects === "accepted" ? ("2xx" as const) : ("4xx" as const),
      finding: finding ?? null,
      note: note ?? null,
      exchanges: exchanges.map(({ step, came }) => ({
        what: step.what,
        status: "status" in came ? came.status : null,
        failure: "failure" in came ? came.failure : null,
        detail: "failure" in came ? came.detail : null,
        ms: came.ms,
      })),
    })),
  };
}
