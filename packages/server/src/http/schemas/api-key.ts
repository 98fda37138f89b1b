import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { apiKeyScopes } from "../../partners/api-keys.ts";
import { confirmedProposal } from "./proposal.ts";

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
export const operatorApiKeyBody = bodyOf("PartnerApiKeyToMake", "Another API key of a partner", {
  ...keyToMake,
  proposal: confirmedProposal,
});

export const newApiKeySchema = componentOf("NewApiKey", "A new API key", {
  id: z.uuid(),
  apiKey: described(z.string(), "pb_ and base64url, in this answer only"),
});

export const revokedApiKeySchema = z.object({ id: z.uuid() });
