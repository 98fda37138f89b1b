import { z } from "zod";
import { component, described } from "../../input/descriptions.ts";
import { roles } from "../../operators/operator.ts";
import { apiKeyScopes } from "../../partners/api-keys.ts";

export const sessionBody = component(
  z
    .strictObject({
      token: described(
        z.string().max(1_024),
        "An operator's token, a partner's API key, or that of a view link; not needed in the sandbox",
      ),
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

const view = described(
  z.object({ by: z.string(), until: z.iso.datetime() }).nullable(),
  "It was opened by an operator's link, reads only, and ends then; null: by an API key",
);

export const sessionSchema = component(
  z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("operator"), name: z.string(), role: z.enum(roles), ...every }),
    z.object({ kind: z.literal("partner"), name: z.string(), partnerId: z.uuid(), scopes, view, ...every }),
  ]),
  "Session",
  "Who is signed in to the console",
);
