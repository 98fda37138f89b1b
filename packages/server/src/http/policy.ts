import type { FastifyInstance, FastifyRequest } from "fastify";
import type { Role } from "../operators/operators.ts";
import type { ProposableAction } from "../operators/proposals.ts";
import type { ApiKeyScope } from "../partners/partner.ts";

/**
 * The policy of a route: who may call it, what of it the audit has, and which limit counts it. It is beside the route,
 * where `operation` demands it. Everything that depends on the route asks for it: the callers' rights, the audit, the
 * rule of two admins, the limits, the documented errors. A route behind a key that has none does not start.
 * What a role may do is a search for its name with a dot, `viewer.` or `admin.`, in the files of routes.
 */
export type Policy = OperatorPolicy | PartnerPolicy | typeof anybody;

export interface OperatorPolicy {
  readonly callers: "operator";
  /** The least role that may call it. */
  readonly role: Role;
  /** Where the rule asks for two admins, it takes a proposal of this action. */
  readonly takesTwo?: ProposableAction;
  readonly audit: Audit;
}

export interface PartnerPolicy {
  readonly callers: "partner";
  /** The scope that an API key with scopes needs; null: any. */
  readonly scope: ApiKeyScope | null;
  /** Counts each request, beside `requests`, which counts all of them. */
  readonly limit: "requests" | "pulls" | "async" | "redeliveries";
  readonly audit: Audit;
}

/** Health, documents, and the sign-in to the console, which has a trail of its own. */
export const anybody = { callers: "anybody" } as const;

/**
 * What the audit has of a request:
 *
 * - nothing: it is reading that shows neither a key nor the content of IPNs
 * - ledger: nothing, because the ledger records it
 * - look: reading that shows content. Its entry is committed before anything is shown
 * - change: one change in the database. Its entry is part of the same transaction
 * - action: anything else. An entry of its intent is committed first, and one of its outcome before it is answered
 */
export type Audit =
  | { readonly kind: "nothing" | "ledger" }
  | { readonly kind: "look" | "change" | "action"; readonly of: AuditedState };

/** The state that entries have from before and after; `input`: the request's body, which then holds no secret. */
export type AuditedState =
  | "partner"
  | "caller"
  | "terminal"
  | "acquirer"
  | "operator"
  | "proposal"
  | "rule"
  | "link"
  | "input";

function policiesOf<const Callers extends Omit<OperatorPolicy, "audit"> | Omit<PartnerPolicy, "audit">>(who: Callers) {
  const audited = (kind: "look" | "change" | "action") => (of: AuditedState) => ({ ...who, audit: { kind, of } });
  return {
    reads: { ...who, audit: { kind: "nothing" as const } },
    runs: { ...who, audit: { kind: "ledger" as const } },
    looks: audited("look"),
    changes: audited("change"),
    acts: audited("action"),
  };
}

export const viewer = policiesOf({ callers: "operator", role: "viewer" });
export const operator = policiesOf({ callers: "operator", role: "operator" });
/** Of routes that show or create keys, or grant that right. */
export const admin = policiesOf({ callers: "operator", role: "admin" });
export const twoAdmins = (takesTwo: ProposableAction) => policiesOf({ callers: "operator", role: "admin", takesTwo });

export const partner = (scope: PartnerPolicy["scope"], limit: PartnerPolicy["limit"]) =>
  policiesOf({ callers: "partner", scope, limit });
export const partnerReads = partner("read", "requests").reads;
/** Each is a row that all instances write one after the other, or work beyond the request. */
export const partnerManages = partner("manage", "redeliveries");

declare module "fastify" {
  interface FastifyContextConfig {
    readonly policy?: Policy;
  }
  interface FastifyInstance {
    /** Whom this scope admits. */
    callers: Policy["callers"];
  }
}

/** Refuses to start with a route that has no policy for the callers of its path, or stands where they are not admitted. */
export function requirePolicies(app: FastifyInstance): void {
  app.decorate("callers", "anybody");
  app.addHook("onRoute", function (route) {
    const { method, url, config } = route;
    const needed = url.startsWith("/operator/") ? "operator" : url.startsWith("/v1/") ? "partner" : "anybody";
    const { callers } = config?.policy ?? anybody;
    if (callers !== needed) throw new Error(`${method} ${url} has no policy for its callers (${needed})`);
    if (this.callers !== needed) throw new Error(`${method} ${url} is not behind the gate of its callers (${needed})`);
  });
}

type PolicyOf<Callers> = Extract<Policy, { readonly callers: Callers }>;

/** The policy of a route in a scope that admits these callers. */
export function policyOf<const Callers extends Policy["callers"]>(
  { routeOptions: { config } }: Pick<FastifyRequest, "routeOptions">,
  callers: Callers,
): PolicyOf<Callers> {
  const { policy } = config;
  if (policy?.callers !== callers) throw new Error(`the route has no policy for ${callers}`);
  return policy as PolicyOf<Callers>;
}
