import { parseJson } from "@paybell/contract";
import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import type { AuditRecord } from "../../operators/audit.ts";
import { roles } from "../../operators/operator.ts";
import { pageOf } from "../../page.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { confirmedProposal, limit, requireId } from "../parameters.ts";
import { admin, twoAdmins } from "../policy.ts";

const time = z.iso.datetime();
const operator = {
  id: z.uuid(),
  name: z.string(),
  role: described(z.enum(roles), "viewer reads; operator acts, too; admin registers, rotates keys and adds operators"),
  createdAt: time,
  expiresAt: time,
  lastUsedAt: described(time.nullable(), "To the minute"),
  revokedAt: time.nullable(),
  subject: described(
    z.string().nullable(),
    "Of a token that a sign-in by OpenID made: issuer and `sub`. Null of one that an admin made",
  ),
};

export const operatorSchema = componentOf("Operator", "An operator and what they may", operator);

export const newOperatorSchema = componentOf("NewOperator", "An operator with their token", {
  ...operator,
  token: described(z.string(), "Bearer token of the operator API, in this answer only"),
});

export const operatorBody = bodyOf("OperatorToAdd", "Who becomes an operator", {
  name: z.string(),
  role: z.enum(roles),
  expiresInDays: described(z.int(), "Default 90, at most 366").optional(),
  proposal: confirmedProposal,
});

export const operatorListSchema = z.object({ items: z.array(operatorSchema) });

const auditQuery = z.strictObject({
  actor: described(z.string().max(128), "An operator's name, or `partner <id>`").optional(),
  subject: described(z.string().max(128), "What was acted on: an id").optional(),
  action: described(z.string().max(128), "The operationId of the request, such as rotateKey").optional(),
  tokenId: described(z.string().max(128), "The id of the operator's token or of the partner's API key").optional(),
  address: described(z.string().max(128), "Where the caller was").optional(),
  from: z.iso.datetime({ offset: true }).optional(),
  to: z.iso.datetime({ offset: true }).optional(),
  after: described(
    z.string().regex(/^[1-9]\d{0,14}$/, "must be `next` of a page"),
    "`next` of the previous page",
  ).optional(),
  limit,
});

const nullableJson = described(z.unknown(), "The value before or after, without secrets; null if there is none");

export const auditPageSchema = componentOf("AuditPage", "Who did what, the newest first", {
  items: z.array(
    z.object({
      seq: z.int(),
      at: time,
      actor: z.string(),
      role: z.string(),
      tokenId: z.string(),
      address: z.string(),
      action: described(z.string(), "The operationId of the request"),
      subject: z.string(),
      before: nullableJson,
      after: nullableJson,
      hash: described(z.string(), "Of this entry and the one before it"),
    }),
  ),
  next: z.string().nullable(),
});

const operation = operations("Operators");

const params = z.object({ id: described(z.string(), "The operator's id") });

export function operatorRoutes(app: HttpApp, { operators, audit }: HttpDependencies): void {
  app.post(
    "/operator/v1/operators",
    operation(twoAdmins("addOperator").changes("input"), "addOperator", "Add an operator", {
      description: "The token is in this answer only: nothing shows it again.",
      body: operatorBody,
      response: responses([201, newOperatorSchema, "Added"], "second_admin_required", "card_number_in_clear"),
    }),
    async (request, reply) => {
      const { operator, token } = await operators.add(request.body);
      return reply.code(201).send({ ...operator, token });
    },
  );
  app.get(
    "/operator/v1/operators",
    operation(admin.reads, "listOperators", "List the operators, in the order in which they were added", {
      response: responses([200, operatorListSchema, "All of them"]),
    }),
    async () => ({ items: await operators.list() }),
  );
  app.post(
    "/operator/v1/operators/:id/revoke",
    operation(admin.changes("operator"), "revokeOperator", "Revoke an operator's token", {
      description: "Every instance refuses it within two seconds.",
      params,
      response: responses([200, operatorSchema, "It is revoked"], "not_found"),
    }),
    async (request) => await operators.revoke(requireId<"operator">(request.params.id, "operator")),
  );
  app.get(
    "/operator/v1/audit",
    operation(admin.reads, "searchAudit", "See who did what", {
      querystring: auditQuery,
      response: responses([200, auditPageSchema, "A page"]),
    }),
    async ({ query }) => {
      const { from, to, after, limit, ...texts } = query;
      const records = await audit.search({
        ...texts,
        fromMs: from === undefined ? undefined : Date.parse(from),
        toMs: to === undefined ? undefined : Date.parse(to),
        before: after === undefined ? undefined : Number(after),
        limit: limit + 1,
      });
      return pageOf(records.map(auditView), limit, ({ seq }) => String(seq));
    },
  );
}

function auditView({ atMs, before, after, ...record }: AuditRecord) {
  return { ...record, at: new Date(atMs).toISOString(), before: shownState(before), after: shownState(after) };
}

/** A long one was cut, and is shown as the text it is. */
function shownState(json: string): unknown {
  if (json === "") return null;
  try {
    return parseJson(json);
  } catch {
    return json;
  }
}
