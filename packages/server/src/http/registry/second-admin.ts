import { isDeepStrictEqual } from "node:util";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { ServiceError } from "../../errors.ts";
import { type PartnerId, readId } from "../../ids.ts";
import { type Actor, bootstrap, mayAs } from "../../operators/operators.ts";
import { areTwoPeople, type ProposableAction } from "../../operators/proposals.ts";
import type { OperatorCallers } from "../callers/operator-callers.ts";
import type { HttpDependencies } from "../dependencies.ts";
import { policyOf } from "../policy.ts";

type Input = Readonly<Record<string, unknown>> & { readonly proposal?: string | undefined };

/** The bootstrap token may add this many admins without a second one: before that, nobody could confirm. */
const firstAdmins = 2;

/** Requests that confirm a proposal. */
const confirmations = new WeakSet<FastifyRequest>();

/**
 * Lets a request that hands out a key or changes the rule through only as the confirmation of another admin's proposal,
 * if the rule asks for two admins. A proposal is used up before the action, so that it cannot happen twice.
 */
export function secondAdmin(
  scope: FastifyInstance,
  parts: HttpDependencies,
  callers: Pick<OperatorCallers, "actor">,
): void {
  scope.addHook("preHandler", async (request) => {
    const action = policyOf(request, "operator").takesTwo;
    if (action === undefined || !takesTwo(action, request.body as Input)) return;
    const minutes = await parts.proposals.rule();
    if (minutes === 0) return;
    const actor = callers.actor(request);
    if (action === "addOperator" && (await isFirstAdmin(parts, actor))) return;
    await confirm(parts, request, action, actor, minutes);
    confirmations.add(request);
  });
}

/**
 * Whether the caller may lower the protection of a partner.
 *
 * @param lowered the settings that do it; empty: anybody who may change a partner
 * @param minutes the rule
 * @throws ServiceError `role_not_allowed`, `second_admin_required`
 */
export function requireMayLower(
  request: FastifyRequest,
  { role }: Actor,
  lowered: readonly string[],
  minutes: number,
): void {
  if (lowered.length === 0) return;
  const what = `To lower the protection of the partner (${lowered.join(", ")})`;
  if (!mayAs(role, "admin")) {
    throw new ServiceError("role_not_allowed", `${what} requires the role admin, and yours is ${role}.`);
  }
  if (minutes > 0 && !confirmations.has(request)) throw takesTwoAdmins(what, minutes);
}

function takesTwoAdmins(what: string, minutes: number): ServiceError {
  const how = `one proposes it, and another must confirm it within ${minutes} minutes.`;
  return new ServiceError("second_admin_required", `${what} takes two admins: ${how}`);
}

async function confirm(
  { proposals }: HttpDependencies,
  request: FastifyRequest,
  action: ProposableAction,
  actor: Actor,
  minutes: number,
): Promise<void> {
  requirePerson(actor);
  // Before the proposal is used up: a change of a partner that lowers nothing takes no admin.
  if (!mayAs(actor.role, "admin")) {
    throw new ServiceError("role_not_allowed", `An admin confirms a proposal, and your role is ${actor.role}.`);
  }
  const { proposal: named, ...input } = request.body as Input;
  if (named === undefined) throw takesTwoAdmins("This", minutes);
  const id = readId<"proposal">(String(named));
  const proposal = id && (await proposals.find(id));
  if (proposal === undefined) throw noSuchProposal();
  if (!areTwoPeople(proposal.proposer, actor)) {
    throw new ServiceError("second_admin_required", whyNotTwo(proposal.proposer, actor));
  }
  const isAsProposed =
    proposal.action === action &&
    proposal.partnerId === partnerOf(request) &&
    isDeepStrictEqual(proposal.input, JSON.parse(JSON.stringify(input)));
  if (!isAsProposed) throw new ServiceError("second_admin_required", "The proposal is for something else.");
  if (!(await proposals.take(proposal.id))) throw noSuchProposal();
}

function whyNotTwo(proposer: Pick<Actor, "subject">, { subject }: Actor): string {
  return (proposer.subject === null) === (subject === null)
    ? "You proposed this yourself: another admin must confirm it."
    : "You may have proposed this yourself: both admins must sign in by OpenID, or both use tokens.";
}

/** @throws ServiceError `second_admin_required`: a token of the settings is no person */
export function requirePerson({ tokenId }: Actor): void {
  if (tokenId !== bootstrap) return;
  const message = "The token of the settings belongs to no person: two named admins must do this.";
  throw new ServiceError("second_admin_required", message);
}

export function noSuchProposal(): ServiceError {
  return new ServiceError("not_found", "There is no such proposal: it was confirmed or withdrawn, or has expired.");
}

/** Null if the route has no partner. */
export function partnerOf({ params }: FastifyRequest): PartnerId | null {
  const { id } = params as { readonly id?: string };
  return id === undefined ? null : (readId<"partner">(id) ?? null);
}

/** Whether the request itself says so. Whether a change of a partner does depends on its settings. */
export function takesTwo(action: ProposableAction, body: Input): boolean {
  if (action === "changePartner") return body.proposal !== undefined;
  // Only an admin among operators can rotate keys.
  return action !== "addOperator" || body["role"] === "admin";
}

async function isFirstAdmin({ operators }: HttpDependencies, { tokenId }: Actor): Promise<boolean> {
  if (tokenId !== bootstrap) return false;
  // Revoked ones count: otherwise revoking the others would allow a new first admin.
  return (await operators.list()).filter(({ role }) => role === "admin").length < firstAdmins;
}
