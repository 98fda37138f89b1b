import { parseJson } from "@paybell/contract";
import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { readId } from "../../ids.ts";
import { described } from "../../input/descriptions.ts";
import type { AuditRecord } from "../../operators/audit.ts";
import type { OperatorRecord } from "../../operators/operator.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import {
  auditPageSchema,
  auditQuery,
  newOperatorSchema,
  operatorBody,
  operatorListSchema,
  operatorSchema,
} from "../schemas/operator.ts";
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Operators");

const params = z.object({ id: described(z.string(), "The operator's id") });

/** Operators, and the audit. */
export function operatorRoutes(app: HttpApp, { operators, audit }: HttpDependencies): void {
  app.post(
    "/operator/v1/operators",
    operation("addOperator", "Add an operator", {
      description: "The token is in this answer only: nothing shows it again.",
      body: operatorBody,
      response: responses([201, newOperatorSchema, "Added"], "second_admin_required", "card_number_in_clear"),
    }),
    async (request, reply) => {
      const { operator, token } = await operators.add(request.body);
      return reply.code(201).send({ ...operatorView(operator), token });
    },
  );
  app.get(
    "/operator/v1/operators",
    operation("listOperators", "List the operators, in the order in which they were added", {
      response: responses([200, operatorListSchema, "All of them"]),
    }),
    async () => ({ items: (await operators.list()).map(operatorView) }),
  );
  app.post(
    "/operator/v1/operators/:id/revoke",
    operation("revokeOperator", "Revoke an operator's token", {
      description: "Every instance refuses it within two seconds.",
      params,
      response: responses([200, operatorSchema, "It is revoked"], "not_found"),
    }),
    async (request) => {
      const id = readId<"operator">(request.params.id);
      if (id === undefined) throw new ServiceError("not_found", "There is no such operator.");
      return operatorView(await operators.revoke(id));
    },
  );
  app.get(
    "/operator/v1/audit",
    operation("searchAudit", "See who did what", {
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
      const items = records.slice(0, limit);
      const last = items.at(-1);
      return { items: items.map(auditView), next: records.length > limit ? String(last?.seq) : null };
    },
  );
}

function operatorView({ id, name, role, createdAt, expiresAt, lastUsedAt, revokedAt, subject }: OperatorRecord) {
  return {
    id,
    name,
    role,
    createdAt: createdAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    lastUsedAt: lastUsedAt?.toISOString() ?? null,
    revokedAt: revokedAt?.toISOString() ?? null,
    subject,
  };
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
