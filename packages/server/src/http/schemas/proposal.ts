import { z } from "zod";
import { componentOf, described } from "../../input/descriptions.ts";
import { proposable, ruleMinutesMax } from "../../operators/proposals.ts";

/** In the body of what two admins do together. */
export const confirmedProposal = described(
  z.uuid(),
  "Where two admins are needed: the proposal of another admin which this confirms. The rest is as it was proposed",
).optional();

export const proposalSchema = componentOf("Proposal", "What one admin proposed and another may confirm", {
  id: z.uuid(),
  action: described(z.enum(proposable), "The operationId of the request that confirms it"),
  partnerId: z.uuid().nullable(),
  input: described(z.record(z.string(), z.unknown()), "The body of that request, without `proposal`"),
  proposedBy: described(z.string(), "The name of the admin; another one confirms"),
  createdAt: z.iso.datetime(),
  expiresAt: described(z.iso.datetime(), "It cannot be confirmed after that"),
});

export const twoAdminRuleSchema = componentOf(
  "TwoAdminRule",
  "Whether it takes two admins to hand out a key, to lower a partner's protection, or to change this rule",
  {
    minutes: described(
      z.int().min(0).max(ruleMinutesMax),
      "Within how many minutes a second admin must confirm; 0: one admin is enough",
    ),
  },
);

export const twoAdminRuleBody = twoAdminRuleSchema.extend({ proposal: confirmedProposal }).strict();

export const proposalListSchema = z.object({ items: z.array(proposalSchema) });
