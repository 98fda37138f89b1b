import { z } from "zod";
import { component, described } from "../../input/descriptions.ts";
import { roles } from "../../operators/operator.ts";
import { apiKeyScopes } from "../../partners/api-keys.ts";

export const sessionBody = component(
  z
    .strictObject({
      token: described(z.string().max(512), "An operator's token or a partner's API key; not needed in the sandbox"),
    })
    .partial()
    .optional(),
  "SignIn",
  "Who signs in",
);

const every = {
  csrf: described(z.string(), "Send it as the header `paybell-csrf` with every request that changes something"),
  expiresAt: described(z.iso.datetime(), "Unless the session is read again before"),
  sandbox: described(z.boolean(), "Local, with a test acquirer: anybody on this machine may sign in"),
};

const scopes = described(z.array(z.enum(apiKeyScopes)).nullable(), "Of the API key; null: everything");

export const sessionSchema = component(
  z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("operator"), name: z.string(), role: z.enum(roles), ...every }),
    z.object({ kind: z.literal("partner"), name: z.string(), partnerId: z.uuid(), scopes, ...every }),
  ]),
  "Session",
  "Who is signed in to the console",
);
