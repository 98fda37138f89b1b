import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { newId, readId } from "../../ids.ts";
import { componentOf, described } from "../../input/descriptions.ts";
import { type NewOperator, requireValidOperator } from "../../operators/operators.ts";
import { type ProposableAction, type Proposal, proposable, ruleMinutesMax } from "../../operators/proposals.ts";
import { type NewApiKey, requireValidApiKey } from "../../partners/api-keys.ts";
import { loweredSettings, type PartnerInput } from "../../partners/settings/settings.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { bodyCheckedElsewhere, operations, responses } from "../operation.ts";
import { confirmedProposal, noSuch, partnerParams } from "../parameters.ts";
import { admin, twoAdmins, viewer } from "../policy.ts";
import { apiKeyBody, rotateBody } from "./keys.ts";
import { operatorBody } from "./operators.ts";
import { partnerPatchSchema } from "./partners.ts";
import { noSuchProposal, partnerOf, requirePerson, takesTwo } from "./second-admin.ts";

export const proposalSchema = componentOf("Proposal", "What one admin proposed and another may confirm", {
  id: z.uuid(),
  action: described(z.enum(proposable), "The operationId of the request that confirms it"),
  partnerId: z.uuid().nullable(),
  input: described(z.record(z.string(), z.unknown()), "The body of that request, without `proposal`"),
  proposedBy: described(z.string(), "The name of the admin; another one confirms"),
  createdAt: z.iso.datetime(),
  expiresAt: described(z.iso.datetime(), "It cannot be confirmed after that"),
});

const twoAdminRuleSchema = componentOf(
  "TwoAdminRule",
  "Whether it takes two admins to hand out a key, to lower a partner's protection, or to change this rule",
  {
    minutes: described(
      z.int().min(0).max(ruleMinutesMax),
      "Within how many minutes a second admin must confirm; 0: one admin is enough",
    ),
  },
);

const twoAdminRuleBody = twoAdminRuleSchema.extend({ proposal: confirmedProposal }).strict();

export const proposalListSchema = z.object({ items: z.array(proposalSchema) });

const operation = operations("Operators");

const proposalParams = z.object({ id: described(z.string(), "The proposal's id") });

/** Proposals of what takes two admins. It is confirmed by the request itself, which then names the proposal. */
export function proposalRoutes(app: HttpApp, parts: HttpDependencies, callers: Pick<OperatorCallers, "actor">): void {
  const propose = (action: ProposableAction) => async (request: FastifyRequest, reply: FastifyReply) =>
    reply.code(201).send(viewOf(await proposed(parts, callers, action, request)));
  const documented = {
    description: "Another admin confirms it by the request itself, with `proposal`, before it expires.",
    response: responses(
      [201, proposalSchema, "Proposed"],
      "not_found",
      "second_admin_required",
      "card_number_in_clear",
    ),
  };
  app.post(
    "/operator/v1/partners/:id/keys/rotate/propose",
    operation(admin.changes("partner"), "proposeRotateKey", "Propose to replace a partner's key", {
      ...documented,
      params: partnerParams,
      body: rotateBody.omit({ proposal: true }),
    }),
    propose("rotateKey"),
  );
  app.post(
    "/operator/v1/partners/:id/api-keys/propose",
    operation(admin.changes("partner"), "proposeApiKey", "Propose another API key of a partner", {
      ...documented,
      params: partnerParams,
      body: apiKeyBody,
    }),
    propose("addApiKey"),
  );
  app.post(
    "/operator/v1/operators/propose",
    operation(admin.changes("input"), "proposeOperator", "Propose another admin", {
      ...documented,
      body: operatorBody.omit({ proposal: true }),
    }),
    propose("addOperator"),
  );
  app.post(
    "/operator/v1/partners/:id/propose",
    {
      validatorCompiler: bodyCheckedElsewhere,
      ...operation(admin.changes("partner"), "proposePartnerChange", "Propose to lower a partner's protection", {
        ...documented,
        params: partnerParams,
        body: partnerPatchSchema.omit({ proposal: true }),
      }),
    },
    propose("changePartner"),
  );
  app.get(
    "/operator/v1/two-admin-rule",
    operation(viewer.reads, "getTwoAdminRule", "See whether keys take two admins", {
      response: responses([200, twoAdminRuleSchema, "The rule"]),
    }),
    async () => ({ minutes: await parts.proposals.rule() }),
  );
  app.put(
    "/operator/v1/two-admin-rule",
    operation(
      twoAdmins("changeTwoAdminRule").changes("rule"),
      "changeTwoAdminRule",
      "Change the rule; once it asks for two admins, they do it together",
      {
        body: twoAdminRuleBody,
        response: responses([200, twoAdminRuleSchema, "The rule, for every instance"], "second_admin_required"),
      },
    ),
    async ({ body: { minutes } }) => {
      await parts.proposals.changeRule(minutes);
      return { minutes };
    },
  );
  app.post(
    "/operator/v1/two-admin-rule/propose",
    operation(admin.changes("rule"), "proposeTwoAdminRule", "Propose to change the rule", {
      ...documented,
      body: twoAdminRuleBody.omit({ proposal: true }),
    }),
    propose("changeTwoAdminRule"),
  );
  app.get(
    "/operator/v1/proposals",
    operation(admin.reads, "listProposals", "List what can be confirmed, in the order in which it was proposed", {
      response: responses([200, proposalListSchema, "All of them"]),
    }),
    async () => ({ items: (await parts.proposals.list()).map(viewOf) }),
  );
  app.post(
    "/operator/v1/proposals/:id/withdraw",
    operation(admin.changes("proposal"), "withdrawProposal", "Withdraw a proposal, your own or another's", {
      params: proposalParams,
      response: responses([200, proposalSchema, "It is withdrawn"], "not_found"),
    }),
    async (request) => {
      const id = readId<"proposal">(request.params.id);
      const proposal = id && (await parts.proposals.find(id));
      if (proposal === undefined || !(await parts.proposals.take(proposal.id))) throw noSuchProposal();
      return viewOf(proposal);
    },
  );
}

async function proposed(
  { proposals, registry }: HttpDependencies,
  callers: Pick<OperatorCallers, "actor">,
  action: ProposableAction,
  request: FastifyRequest,
): Promise<Proposal> {
  const input = request.body as Readonly<Record<string, unknown>>;
  const minutes = await proposals.rule();
  if (minutes === 0 || (action !== "changePartner" && !takesTwo(action, input))) throw oneIsEnough();
  const { name, tokenId, subject } = callers.actor(request);
  requirePerson(callers.actor(request));
  const partnerId = partnerOf(request);
  const isOfPartner = action === "rotateKey" || action === "addApiKey" || action === "changePartner";
  if (isOfPartner && (partnerId === null || (await registry.find(partnerId)) === undefined)) {
    noSuch("partner");
  }
  if (action === "changePartner" && partnerId !== null) {
    const { standing, next } = await registry.preview(partnerId, input as Partial<PartnerInput>);
    if (loweredSettings(standing, next).length === 0) throw oneIsEnough();
  }
  if (action === "addApiKey") requireValidApiKey(input as unknown as NewApiKey);
  if (action === "addOperator") requireValidOperator(input as unknown as NewOperator);
  const proposal = { id: newId<"proposal">(), action, partnerId, input, proposer: { name, tokenId, subject } };
  return await proposals.add(proposal, minutes);
}

function oneIsEnough(): ServiceError {
  return new ServiceError("not_found", "One admin is enough for this here: it takes no proposal.");
}

function viewOf({ proposer, ...proposal }: Proposal) {
  return { ...proposal, proposedBy: proposer.name };
}
