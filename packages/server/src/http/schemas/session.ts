import { z } from "zod";
import { roles } from "../../operators/operator.ts";
import { component, described } from "./registry.ts";

export const sessionBody = component(
  z
    .strictObject({
      token: described(z.string().max(512), "An operator's token or a partner's API key; the sandbox does without"),
    })
    .partial()
    .optional(),
  "SignIn",
  "Who signs in",
);

const every = {
  csrf: described(z.string(), "Send it as the header `paybell-csrf` with everything that changes something"),
  expiresAt: described(z.iso.datetime(), "Unless it is asked for again before"),
  sandbox: described(z.boolean(), "Local, with a test acquirer: anybody on this machine may sign in"),
};

export const sessionSchema = component(
  z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("operator"), name: z.string(), role: z.enum(roles), ...every }),
    z.object({ kind: z.literal("partner"), name: z.string(), partnerId: z.uuid(), ...every }),
  ]),
  "Session",
  "Who is signed in to the console",
);
