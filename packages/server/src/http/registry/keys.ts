import { overlapHours as overlap } from "@paybell/contract";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { KeyId, PartnerId } from "../../ids.ts";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { apiKeyScopes } from "../../partners/api-keys.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, type PartnerRoutes, responses } from "../operation.ts";
import { confirmedProposal, partnerParams, requireId, requirePartnerId } from "../parameters.ts";
import { operator, partnerManages, twoAdmins } from "../policy.ts";

export const scopesSchema = described(
  z.array(z.enum(apiKeyScopes)),
  "read: what is looked up; pull: notifications in commit order; commands: running them; manage: redeliveries, test " +
    "notifications, endpoints and API keys",
);

const keyToMake = {
  name: described(z.string(), "What it is for"),
  scopes: scopesSchema,
  expiresInDays: described(z.int(), "Left out: until it is revoked").optional(),
};

export const apiKeyBody = bodyOf("ApiKeyToMake", "An API key of its own for each program", keyToMake);
const operatorApiKeyBody = bodyOf("PartnerApiKeyToMake", "Another API key of a partner", {
  ...keyToMake,
  proposal: confirmedProposal,
});

const newApiKeySchema = componentOf("NewApiKey", "A new API key", {
  id: z.uuid(),
  apiKey: described(z.string(), "pb_ and base64url, in this answer only"),
});

const revokedApiKeySchema = z.object({ id: z.uuid() });

const operation = operations("Partners");
const ownOperation = operations("Self");

export const keyKind = z.enum(["apiKey", "encryptionKey", "signingKey", "webhookSecret"]);
const time = z.iso.datetime();
const rotation = {
  key: keyKind,
  overlapHours: described(
    z.number().min(0).max(overlap.max).default(overlap.initial),
    "How long the old version stays valid",
  ),
};
const ownRotateBody = bodyOf("OwnRotation", "Which of your keys to replace", rotation);
export const rotateBody = bodyOf("Rotation", "Which key to replace", { ...rotation, proposal: confirmedProposal });
export const rotatedSchema = componentOf("RotatedKey", "The new version", {
  id: z.uuid(),
  kind: keyKind,
  secret: described(z.string(), "Shown only once"),
  activeFrom: described(time, "From then on it encrypts or signs: install it before"),
  expiresOld: time,
});

const keyParams = z.object({ keyId: described(z.string(), "The key's id") });
const ofPartner = z.object({ ...partnerParams.shape, ...keyParams.shape });
const made = [201, newApiKeySchema, "The key; it is in this answer only"] as const;
const revoked = [200, revokedApiKeySchema, "It is refused from now on"] as const;
const addErrors = ["card_number_in_clear", "too_many_api_keys"] as const;

/**
 * A partner's own keys: it adds and revokes API keys itself, and one whose key has no limits replaces the others. GET
 * /v1/self lists them.
 */
export function keyRoutes({ app, parts, callers }: PartnerRoutes): void {
  app.post(
    "/v1/api-keys",
    ownOperation(
      partnerManages.changes("caller"),
      "addOwnApiKey",
      "Make another API key, which may do what its scopes say",
      {
        body: apiKeyBody,
        response: responses(made, ...addErrors),
      },
    ),
    async (request, reply) => {
      const scopes = callers.scopes(request);
      // The key from the registration expires when it is rotated, which concerns no other.
      const maker = scopes === null ? null : callers.keyId(request);
      const key = await parts.apiKeys.add(callers.partner(request).id, request.body, scopes, maker);
      return reply.code(201).send(key);
    },
  );
  app.post(
    "/v1/api-keys/:keyId/revoke",
    ownOperation(partnerManages.changes("caller"), "revokeOwnApiKey", "Revoke one of your API keys", {
      params: keyParams,
      response: responses(revoked, "not_found", "last_managing_key"),
    }),
    async (request) => revoke(parts, callers.partner(request).id, request.params.keyId, callers.scopes(request)),
  );
  app.post(
    "/v1/keys/rotate",
    ownOperation(partnerManages.changes("caller"), "rotateOwnKey", "Replace one of your keys", {
      description:
        "Takes an API key without scopes: a new one of those allows everything. Encryption and signing: the old " +
        "version is used until the overlap ends, so install the new one first; with an overlap of 0 the new one is " +
        "used at once. Webhook secret and API key: both are valid during the overlap.",
      body: ownRotateBody,
      response: responses([200, rotatedSchema, "The new version; its secret is in this answer only"]),
    }),
    async (request) => {
      if (callers.scopes(request) !== null) {
        throw new ServiceError("scope_not_allowed", "Only an API key without limits replaces keys.");
      }
      const { key, overlapHours } = request.body;
      return await parts.registry.rotate(callers.partner(request).id, key, overlapHours);
    },
  );
}

/** The same for the operator, of any partner. */
export function operatorKeyRoutes(app: HttpApp, parts: HttpDependencies): void {
  app.post(
    "/operator/v1/partners/:id/api-keys",
    operation(
      twoAdmins("addApiKey").changes("partner"),
      "addApiKey",
      "Make another API key of a partner, which may do what its scopes say",
      {
        params: partnerParams,
        body: operatorApiKeyBody,
        response: responses(made, ...addErrors, "not_found", "second_admin_required"),
      },
    ),
    async (request, reply) => {
      const key = await parts.apiKeys.add(requirePartnerId(request.params.id), request.body, null);
      return reply.code(201).send(key);
    },
  );
  app.post(
    "/operator/v1/partners/:id/api-keys/:keyId/revoke",
    operation(operator.changes("partner"), "revokeApiKey", "Revoke an API key of a partner", {
      params: ofPartner,
      response: responses(revoked, "not_found"),
    }),
    async (request) => revoke(parts, requirePartnerId(request.params.id), request.params.keyId, "operator"),
  );
  app.post(
    "/operator/v1/partners/:id/keys/rotate",
    operation(twoAdmins("rotateKey").changes("partner"), "rotateKey", "Replace a key", {
      description:
        "Encryption and signing: the old version is used until the overlap ends, because the partner has to " +
        "install the new one first; with an overlap of 0 the new one is used at once. Webhook secret and API " +
        "key: both are valid during the overlap.",
      params: partnerParams,
      body: rotateBody,
      response: responses(
        [200, rotatedSchema, "The new version; its secret is in this answer only"],
        "not_found",
        "second_admin_required",
      ),
    }),
    async (request) =>
      await parts.registry.rotate(requirePartnerId(request.params.id), request.body.key, request.body.overlapHours),
  );
}

async function revoke(
  { apiKeys }: HttpDependencies,
  partnerId: PartnerId,
  text: string,
  by: Parameters<HttpDependencies["apiKeys"]["revoke"]>[2],
): Promise<{ id: KeyId }> {
  const id = requireId<"key">(text, "API key");
  await apiKeys.revoke(partnerId, id, by);
  return { id };
}
