import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";

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

export const certifyBody = bodyOf("Certify", "Which endpoint is tested", {
  url: described(z.string().max(2_048), "Left out: the registered one").optional(),
});
