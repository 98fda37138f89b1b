import { z } from "zod";
import { bodyOf, componentOf, described } from "../../input/descriptions.ts";
import { roles } from "../../operators/operators.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import { operations, responses } from "../operation.ts";
import { confirmedProposal, requireId } from "../parameters.ts";
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

const operation = operations("Operators");

const params = z.object({ id: described(z.string(), "The operator's id") });

export function operatorRoutes(app: HttpApp, { operators }: HttpDependencies): void {
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
}
