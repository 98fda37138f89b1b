import { z } from "zod";
import { moneyKinds } from "../../ledger/money-operations.ts";
import type { HttpApp, HttpParts } from "../parts.ts";
import { chainSchema, moneyParams, moneyQuery, moneyRecords, reasonBody } from "../schemas/money.ts";
import { responses } from "../schemas/problem.ts";
import { component } from "../schemas/registry.ts";

const tags = ["Money"];

function answers<Schema extends z.ZodType>(schema: Schema) {
  return { 200: { schema, description: "As it stands" } };
}

/** Transactions, Reversals and settlements for the operator, with the decisions about those in doubt. */
export function operatorMoneyRoutes(app: HttpApp, { money }: HttpParts): void {
  for (const kind of moneyKinds) {
    const { noun, one } = moneyRecords[kind];
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    const page = component(z.object({ items: z.array(one), next: z.uuid().nullable() }), `${name}Page`, "Newest first");
    app.get(
      `/operator/v1/${kind}`,
      {
        schema: {
          operationId: `search${name}`,
          tags,
          summary: kind === "settlements" ? "See settlements under way" : `Search ${kind}`,
          querystring: moneyQuery,
          response: responses({ 200: { schema: page, description: "A page" } }, "unknown_partner"),
        },
      },
      async (request) => await money.search(kind, request.query),
    );
    app.get(
      `/operator/v1/${kind}/:id`,
      {
        schema: {
          operationId: `inspect${noun.charAt(0).toUpperCase()}${noun.slice(1)}`,
          tags,
          summary: `See one ${noun}`,
          params: moneyParams,
          response: responses(answers(one), "not_found"),
        },
      },
      async (request) => await money.find(kind, request.params.id),
    );
  }
  app.get(
    "/operator/v1/transactions/:id/chain",
    {
      schema: {
        operationId: "getChain",
        tags,
        summary: "See a transaction with those that it changes, and those that change it",
        params: moneyParams,
        response: responses({ 200: { schema: chainSchema, description: "In their order" } }, "not_found"),
      },
    },
    async (request) => ({ items: await money.chain(request.params.id) }),
  );
  app.post(
    "/operator/v1/reversals/:id/retry",
    {
      schema: {
        operationId: "retryReversal",
        tags,
        summary: "Send a parked Reversal again",
        params: moneyParams,
        response: responses(answers(moneyRecords.reversals.one), "not_found", "reversal_not_parked"),
      },
    },
    async (request) => await money.retryReversal(request.params.id),
  );
  app.post(
    "/operator/v1/reversals/:id/resolve",
    {
      schema: {
        operationId: "resolveReversal",
        tags,
        summary: "End a parked Reversal by hand: nothing of its transaction stands at the acquirer",
        params: moneyParams,
        body: reasonBody,
        response: responses(answers(moneyRecords.reversals.one), "not_found", "reversal_not_parked"),
      },
    },
    async (request) => await money.resolveReversal(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/settlements/:id/abort",
    {
      schema: {
        operationId: "abortSettlement",
        tags,
        summary: "End a settlement that the acquirer does not answer: its batch is open again",
        params: moneyParams,
        body: reasonBody,
        response: responses(answers(moneyRecords.settlements.one), "not_found", "settlement_ended"),
      },
    },
    async (request) => await money.abortSettlement(request.params.id, request.body.reason),
  );
}
