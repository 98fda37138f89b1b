import { z } from "zod";
import { component, described } from "../../input/descriptions.ts";
import { proposable } from "../../operators/proposals.ts";

/** In the body of what two admins do together. */
export const confirmedProposal = described(
  z.uuid(),
  "Where two admins are needed: the proposal of another admin which this confirms. The rest is as it was proposed",
).optional();

export const proposalSchema = component(
  z.object({
    id: z.uuid(),
    action: described(z.enum(proposable), "The operationId of the request that confirms it"),
    partnerId: z.uuid().nullable(),
    input: described(z.record(z.string(), z.unknown()), "The body of that request, without `proposal`"),
    proposedBy: described(z.string(), "The name of the admin; another one confirms"),
    createdAt: z.iso.datetime(),
    expiresAt: described(z.iso.datetime(), "It cannot be confirmed after that"),
  }),
  "Proposal",
  "What one admin proposed and another may confirm",
);

export const proposalListSchema = z.object({ items: z.array(proposalSchema) });
