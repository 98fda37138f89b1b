import { z } from "zod";
import type { ErrorCode } from "../../errors.ts";
import { type NewEvent, withoutReport } from "../../events.ts";
import { componentOf } from "../../input/descriptions.ts";
import { type MoneyItem, moneyKinds } from "../../ledger/money-operations.ts";
import type { HttpApp, HttpDependencies } from "../dependencies.ts";
import type { OperatorCallers } from "../operator-callers.ts";
import {
  chainSchema,
  merchantsQuery,
  merchantsSchema,
  moneyParams,
  moneyRecords,
  reasonBody,
  retryBody,
  settlementDetail,
} from "../schemas/money.ts";
import { operations, responses } from "../schemas/problem.ts";

const operation = operations("Money");

/** Transactions, Reversals and settlements for the operator, with the decisions about those in doubt. */
export function operatorMoneyRoutes(
  app: HttpApp,
  { money }: HttpDependencies,
  callers: Pick<OperatorCallers, "mayReadContent">,
): void {
  for (const kind of moneyKinds) {
    const { noun, one, query } = moneyRecords[kind];
    const name = kind.charAt(0).toUpperCase() + kind.slice(1);
    const page = componentOf(`${name}Page`, "Newest first", { items: z.array(one), next: z.guid().nullable() });
    app.get(
      `/operator/v1/${kind}`,
      operation(`search${name}`, kind === "settlements" ? "List settlements in progress" : `Search ${kind}`, {
        querystring: query,
        response: responses([200, page, "A page"], "unknown_partner"),
      }),
      async (request) => {
        const { items, next } = await money.search(kind, request.query);
        return { items: items.map(withoutContent), next };
      },
    );
    if (kind === "settlements") continue;
    app.get(
      `/operator/v1/${kind}/:id`,
      operation(`inspect${noun.charAt(0).toUpperCase()}${noun.slice(1)}`, `See one ${noun}`, {
        ...(kind === "events" && {
          description:
            "The role `operator` sees the report that a switch sent (`detail.item`), which others and lists do not " +
            "show. The audit records each look.",
        }),
        params: moneyParams,
        response: responses([200, one, "Its current state"], "not_found"),
      }),
      async (request) => {
        const found = await money.find(kind, request.params.id);
        return callers.mayReadContent(request) ? found : withoutContent(found);
      },
    );
  }
  app.get(
    "/operator/v1/settlements/:id",
    operation("inspectSettlement", "See one settlement, under way or ended, with the totals of both sides", {
      params: moneyParams,
      response: responses([200, settlementDetail, "Its current state"], "not_found"),
    }),
    async (request) => await money.settlement(request.params.id),
  );
  app.get(
    "/operator/v1/merchants",
    operation("getMerchantTotals", "See what each merchant sold in a period", {
      querystring: merchantsQuery,
      response: responses([200, merchantsSchema, "As it stands"], "unknown_partner"),
    }),
    async ({ query: { partner, from, to } }) => ({
      items: [...(await money.merchants({ partner, fromMs: Date.parse(from), toMs: Date.parse(to) }))],
    }),
  );
  app.get(
    "/operator/v1/transactions/:id/chain",
    operation("getChain", "See a transaction with those that it changes, and those that change it", {
      params: moneyParams,
      response: responses([200, chainSchema, "In order"], "not_found"),
    }),
    async (request) => ({ items: await money.chain(request.params.id) }),
  );
  app.post(
    "/operator/v1/reversals/:id/retry",
    operation("retryReversal", "Send a parked Reversal again, or with a reason one that is done", {
      params: moneyParams,
      body: retryBody.optional(),
      response: decided(moneyRecords.reversals.one, "reversal_not_parked"),
    }),
    async (request) => await money.retryReversal(request.params.id, request.body?.reason),
  );
  app.post(
    "/operator/v1/reversals/:id/resolve",
    operation("resolveReversal", "End a parked Reversal manually: the acquirer confirmed that nothing is charged", {
      params: moneyParams,
      body: reasonBody,
      response: decided(moneyRecords.reversals.one, "reversal_not_parked"),
    }),
    async (request) => await money.resolveReversal(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/settlements/:id/abort",
    operation("abortSettlement", "End a settlement that the acquirer does not answer: its batch is open again", {
      params: moneyParams,
      body: reasonBody,
      response: decided(moneyRecords.transactions.one, "settlement_ended"),
    }),
    async (request) => await money.abortSettlement(request.params.id, request.body.reason),
  );
  app.post(
    "/operator/v1/settlements/:id/resolve",
    operation(
      "resolveSettlement",
      "Reopen a batch that the acquirer settled after the abort, and that has changed since",
      {
        params: moneyParams,
        body: reasonBody,
        response: decided(moneyRecords.transactions.one, "settlement_not_in_doubt"),
      },
    ),
    async (request) => await money.resolveSettlement(request.params.id, request.body.reason),
  );
}

/** The answers to a person's decision. */
function decided(one: z.ZodType, ...refusals: readonly ErrorCode[]) {
  return responses([200, one, "Its current state"], "not_found", ...refusals, "card_number_in_clear");
}

/** An event may hold what a switch reported, and so what a cardholder bought. */
function withoutContent(item: MoneyItem): MoneyItem {
  const { detail } = item;
  if (typeof detail !== "object" || detail === null) return item;
  return { ...item, detail: withoutReport(detail as NewEvent["detail"]) };
}
